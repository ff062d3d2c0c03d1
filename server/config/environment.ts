/** The environment, read once and in one place: nothing else in the program looks at `process.env`. */
import { readlinkSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { parseDuration } from "./units.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";
export type Language = "zh-CN" | "en";

export interface ConfigProblem {
	/** Dotted path of the setting, or the name of the environment variable. */
	key: string;
	/** Line in config.yaml, from 1; null when it stands in no line. */
	line: number | null;
	message: string;
}

export interface Environment {
	home: string;
	/** The machine user's own directory: what `~` stands for. */
	userHome: string;
	/** Where things are kept that can be had again: `openlani` in XDG_CACHE_HOME or in `~/.cache`. */
	cacheDir: string;
	host: string | null;
	port: number | null;
	token: string | null;
	/** One chat model without any file; all null when not set. */
	openai: { apiKey: string | null; baseUrl: string | null; model: string | null };
	logLevel: LogLevel;
	/** `true` = every run limit is locked, otherwise the names that are. */
	limitsLock: true | string[];
	contextAutofold: boolean;
	/** Language of the machine's user: the default where nobody has chosen one. */
	language: Language;
	/** The machine's time zone. */
	timezone: string;
	/** For requests to model servers and the web; null = direct. `noProxy` as it is written in NO_PROXY. */
	proxy: { http: string | null; https: string | null; noProxy: string | null };
	/** What Node itself looks for when it connects, for threads that have no other variables. */
	ofConnections: Record<string, string>;
	/** Terminal wishes of the person at the command line. */
	terminal: { color: boolean };
	/** Answers a variable for `${VAR}` in config.yaml and for servers that are given named variables; undefined when not set. */
	lookup(name: string): string | undefined;
	problems: ConfigProblem[];
}

const levels: LogLevel[] = ["trace", "debug", "info", "warn", "error"];

/** The process's own variables: the one place where they are touched. */
export function processVariables(): Record<string, string | undefined> {
	return process.env;
}

/** Reads every variable that means something to us. Wrong values are problems, never a crash. */
export function readEnvironment(
	env: Record<string, string | undefined>,
	overrides: { home?: string; host?: string; port?: number } = {},
): Environment {
	const problems: ConfigProblem[] = [];
	const text = (name: string) => env[name]?.trim() || null;
	const problem = (key: string, message: string) => problems.push({ key, line: null, message });

	let port: number | null = overrides.port ?? null;
	const portText = text("OPENLANI_PORT");
	if (port === null && portText !== null) {
		if (/^\d{1,5}$/.test(portText) && Number(portText) <= 65535) port = Number(portText);
		else problem("OPENLANI_PORT", `must be a port number from 0 to 65535, not "${portText}"; it is ignored`);
	}
	let token = text("OPENLANI_TOKEN");
	if (token !== null && token.length < 16) {
		problem("OPENLANI_TOKEN", "must have 16 characters or more; it is ignored");
		token = null;
	}
	let logLevel: LogLevel = "info";
	const levelText = text("OPENLANI_LOG_LEVEL")?.toLowerCase();
	if (levelText) {
		const level = levels.find((known) => known === levelText);
		if (level) logLevel = level;
		else problem("OPENLANI_LOG_LEVEL", `must be one of ${levels.join(", ")}, not "${levelText}"; it is ignored`);
	}
	const baseUrl = text("OPENAI_BASE_URL");
	if (baseUrl !== null && !/^https?:\/\/[^/]/i.test(baseUrl))
		problem("OPENAI_BASE_URL", "must begin with http:// or https://; it is ignored");
	const lock = text("OPENLANI_LIMITS_LOCK");
	const autofold = text("OPENLANI_CONTEXT_AUTOFOLD");

	return {
		home: resolveHome(overrides.home ?? text("OPENLANI_HOME"), env),
		userHome: userHomeOf(env),
		cacheDir: resolve(text("XDG_CACHE_HOME") ?? resolve(userHomeOf(env), ".cache"), "openlani"),
		host: overrides.host ?? text("OPENLANI_HOST"),
		port,
		token,
		openai: {
			apiKey: text("OPENAI_API_KEY"),
			baseUrl: baseUrl !== null && /^https?:\/\/[^/]/i.test(baseUrl) ? baseUrl : null,
			model: text("OPENLANI_MODEL"),
		},
		logLevel,
		limitsLock:
			lock === null || lock === "0"
				? []
				: lock === "1"
					? true
					: lock
							.split(",")
							.map((name) => name.trim())
							.filter(Boolean),
		contextAutofold: autofold === null || parseDuration(autofold) !== 0,
		language: languageOf(env),
		timezone: machineTimezone(env),
		proxy: {
			http: text("HTTP_PROXY") ?? text("http_proxy"),
			https: text("HTTPS_PROXY") ?? text("https_proxy"),
			noProxy: text("NO_PROXY") ?? text("no_proxy"),
		},
		ofConnections: env.NODE_TLS_REJECT_UNAUTHORIZED ? { NODE_TLS_REJECT_UNAUTHORIZED: env.NODE_TLS_REJECT_UNAUTHORIZED } : {},
		terminal: { color: !env.NO_COLOR && env.TERM !== "dumb" },
		lookup: (name) => env[name],
		problems,
	};
}

const userHomeOf = (env: Record<string, string | undefined>): string => env.HOME || homedir();

function resolveHome(home: string | null, env: Record<string, string | undefined>): string {
	const userHome = userHomeOf(env);
	if (!home) return resolve(userHome, ".openlani");
	return resolve(home === "~" || home.startsWith("~/") ? userHome + home.slice(1) : home);
}

/** The language of LC_ALL, LC_MESSAGES or LANG: Chinese, or else English. */
export function languageOf(env: Record<string, string | undefined>): Language {
	const value = env.LC_ALL || env.LC_MESSAGES || env.LANG || "";
	return /^zh/i.test(value) ? "zh-CN" : "en";
}

/** TZ, or where /etc/localtime points: asking Intl costs tens of milliseconds the first time. */
function machineTimezone(env: Record<string, string | undefined>): string {
	const zone = env.TZ?.replace(/^:/, "");
	if (zone) return isTimezone(zone) ? zone : "UTC";
	try {
		const name = /zoneinfo\/(?:posix\/|right\/)?([A-Z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*)$/.exec(readlinkSync("/etc/localtime"))?.[1];
		if (name) return name;
	} catch {
		// Not a link here: Intl knows.
	}
	return new Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

export function isTimezone(zone: string): boolean {
	try {
		new Intl.DateTimeFormat("en", { timeZone: zone });
		return true;
	} catch {
		return false;
	}
}
