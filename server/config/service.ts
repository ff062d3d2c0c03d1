/**
 * The configuration while the program runs: the checked values, what is wrong with the file, edits by hand and by the page.
 * A bad file never stops anything: the last good one is kept in force, or the defaults where there is none.
 */
import { type FSWatcher, watch } from "node:fs";
import { mkdir, readFile, rename, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isMap } from "yaml";
import { type ConfigDoor, ConfigInvalid } from "../http/deps.ts";
import { writeFileAtomic } from "../workspace/atomic.ts";
import { applyChanges, changedPaths } from "./change.ts";
import { isPlain, layEntryDefaults, type Plain } from "./defaults.ts";
import type { ConfigProblem, Environment } from "./environment.ts";
import { expandVariables, type Path, type Unset } from "./expand.ts";
import { keyOf } from "./issues.ts";
import { heartbeatAsSection, type ParsedConfig, parseConfig } from "./parse.ts";
import { needRestart } from "./restart.ts";
import type { Config } from "./schema.ts";
import { maskSecrets, restoreSecrets, secretTexts, withoutSecrets } from "./secrets.ts";

export interface ConfigLog {
	info(event: string, data?: Record<string, unknown>): void;
	warn(event: string, data?: Record<string, unknown>): void;
}

/** `changed`: dotted keys that differ; `restartNeeded`: those of them that wait for a restart. */
export type ConfigListener = (current: Config, previous: Config, change: { changed: string[]; restartNeeded: string[] }) => void;

const lostSecret = "is masked, and no value is kept for it (one is kept only for the server that it was entered for): enter it anew";

export interface ConfigService extends ConfigDoor {
	/** The configuration in force. Handed out as a whole: a change makes a new object, never alters this one. */
	current(): Config;
	/** Everything that is wrong now: in config.yaml, with variables it names, in the environment. */
	errors(): ConfigProblem[];
	/** Settings in force that are right and change nothing in this version. */
	withoutEffect(): ConfigProblem[];
	/** True while config.yaml cannot be used and the last good one, or the defaults, are in force. */
	safeMode(): boolean;
	/** Keys that were changed since the start and take effect only after a restart. */
	restartNeeded(): string[];
	/** Called after every change that took effect and after every change of the problems. The answer ends that. */
	onChange(listener: ConfigListener): () => void;
	/** Every secret text in force, for redaction in logs. */
	secrets(): string[];
	/** An entry of `models` as the page sends it: masked keys and variables become the real ones, defaults are filled in. Throws `ConfigInvalid`. */
	resolveModel(entry: Record<string, unknown>): Config["models"][number];
	/** Looks at the file now. Also happens by itself, soon after an edit. */
	reload(): Promise<void>;
	close(): Promise<void>;
}

export interface ConfigOptions {
	environment: Environment;
	clock: { now(): number };
	log: ConfigLog;
	/** False: the file is not watched (commands that end at once). */
	watch?: boolean;
	/** True: nothing is written, not even the copy of a good file (commands that only look). */
	readOnly?: boolean;
	/** How often the file's date is looked at beside the system's own notices, ms. */
	pollMs?: number;
}

interface Reading {
	/** Null when there is no file. */
	text: string | null;
	problem: ConfigProblem | null;
}

export const configPath = (home: string) => join(home, "config.yaml");
export const lastGoodPath = (home: string) => join(home, "data", "config.last-good.yaml");

/** Reads config.yaml once, without watching it. Never throws for what stands in it. */
export function loadConfig(options: ConfigOptions): Promise<ConfigService> {
	return createConfigService({ ...options, watch: false });
}

export async function createConfigService(options: ConfigOptions): Promise<ConfigService> {
	const { environment, clock, log } = options;
	const path = configPath(environment.home);
	const listeners = new Set<ConfigListener>();
	let seen = "";
	let busy: Promise<unknown> = Promise.resolve();
	let inForce: ParsedConfig & { config: Config };
	let text: string | null = null;
	let fileProblems: ConfigProblem[] = [];
	/** Said once each, and again when set anew. */
	let idleSaid: string[] = [];

	/** One reader or writer at a time: a reload never sees half a write. */
	function inTurn<T>(work: () => Promise<T>): Promise<T> {
		const result = busy.then(work, work);
		busy = result.catch(() => undefined);
		return result;
	}

	async function start(): Promise<void> {
		const reading = await readConfig(path);
		seen = await stamp(path);
		const parsed = reading.text === null ? null : usable(reading.text);
		if (parsed?.config) {
			takeOver({ ...parsed, config: parsed.config }, reading.text);
			return;
		}
		const good = await readConfig(lastGoodPath(environment.home));
		const goodParsed = good.text === null ? null : parseConfig(good.text, environment);
		const problems = reading.problem ? [reading.problem] : (parsed?.errors ?? []);
		if (goodParsed?.config) {
			inForce = { ...goodParsed, config: goodParsed.config };
			text = good.text;
			fileProblems =
				problems.length > 0
					? problems
					: [
							{
								key: "config.yaml",
								line: null,
								message:
									"is missing; the last good copy (data/config.last-good.yaml) is in force. Remove that copy too to begin with the defaults",
							},
						];
			log.warn("config.last-good", { problems: fileProblems.map(say) });
			return;
		}
		inForce = defaultsOnly(environment);
		text = null;
		fileProblems = problems;
		if (problems.length > 0) log.warn("config.defaults", { problems: problems.map(say) });
	}

	/** An empty file where a good one was is a torn write, not the wish for defaults. */
	function usable(source: string): ParsedConfig | null {
		return source === "" ? null : parseConfig(source, environment);
	}

	function takeOver(next: ParsedConfig & { config: Config }, source: string | null): void {
		inForce = next;
		text = source;
		fileProblems = [];
		for (const warning of next.warnings) log.warn("config.variable", { problem: say(warning) });
		for (const one of next.withoutEffect) if (!idleSaid.includes(one.key)) log.warn("config.without-effect", { setting: say(one) });
		idleSaid = next.withoutEffect.map(({ key }) => key);
		// After the start, not in it: syncing a file takes its time. `close` waits for it.
		if (!options.readOnly && source !== null && source.trim() !== "") void inTurn(() => keepCopy(source));
	}

	async function keepCopy(source: string): Promise<void> {
		const copy = lastGoodPath(environment.home);
		try {
			if ((await readConfig(copy)).text === source) return;
			await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
			await writeFileAtomic(copy, source, { mode: 0o600 });
		} catch (error) {
			log.warn("config.copy-failed", { error: String(error) });
		}
	}

	function announce(previous: Config, before: string): void {
		const changed = changedPaths(previous, inForce.config);
		const problemsNow = JSON.stringify(fileProblems);
		if (changed.length === 0 && before === problemsNow) return;
		const change = { changed, restartNeeded: needRestart(changed) };
		for (const listener of [...listeners]) {
			try {
				listener(inForce.config, previous, change);
			} catch (error) {
				log.warn("config.listener-failed", { error: String(error) });
			}
		}
	}

	async function look(): Promise<void> {
		const now = await stamp(path);
		if (now === seen) return;
		const reading = await readConfig(path);
		seen = now;
		const previous = inForce.config;
		const before = JSON.stringify(fileProblems);
		if (reading.text !== null && reading.text === text) {
			fileProblems = [];
		} else {
			const parsed = reading.text === null ? null : usable(reading.text);
			if (parsed?.config) {
				takeOver({ ...parsed, config: parsed.config }, reading.text);
				log.info("config.reloaded", { changed: changedPaths(previous, inForce.config) });
			} else {
				fileProblems = reading.problem
					? [reading.problem]
					: (parsed?.errors ?? [{ key: "config.yaml", line: null, message: "is missing; what it held last stays in force" }]);
				log.warn("config.refused", { problems: fileProblems.map(say) });
			}
		}
		announce(previous, before);
	}

	async function change(wish: (shown: Plain) => Plain): Promise<{ restartNeeded: string[] }> {
		// What the page saw: the wish is measured against it, and then laid over what the file holds by now.
		const shownBefore = inForce.shown;
		const lost: Path[] = [];
		const wished = restoreSecrets(wish(maskSecrets(shownBefore) as Plain), shownBefore, lost) as Plain;
		if (lost.length > 0) throw new ConfigInvalid(lost.map((at) => ({ key: keyOf(at), line: null, message: lostSecret })));
		const after = layEntryDefaults(heartbeatAsSection(wished)) as Plain;
		if (changedPaths(shownBefore, after).length === 0) return { restartNeeded: [] };

		await look();
		const base = parseConfig(text ?? "", environment);
		const crlf = text?.includes("\r\n") ?? false;
		if (!applyChanges(base.document, shownBefore, after)) return { restartNeeded: [] };
		let next = isMap(base.document.contents) ? base.document.toString({ lineWidth: 0 }) : "";
		if (crlf) next = next.replace(/\r?\n/g, "\r\n");
		const parsed = parseConfig(next, environment);
		if (!parsed.config) throw new ConfigInvalid(parsed.errors);

		if (fileProblems.length > 0) await setAside(path, environment.home, clock.now(), log);
		const previous = inForce.config;
		const before = JSON.stringify(fileProblems);
		await mkdir(environment.home, { recursive: true, mode: 0o700 });
		await writeFileAtomic(path, next, { mode: 0o600 });
		seen = await stamp(path);
		takeOver({ ...parsed, config: parsed.config }, next);
		const changed = changedPaths(previous, inForce.config);
		log.info("config.written", { changed });
		announce(previous, before);
		return { restartNeeded: needRestart(changed) };
	}

	await start();
	const booted = inForce!.config;
	const stopWatching =
		options.watch === false
			? () => undefined
			: watchFile(
					path,
					options.pollMs ?? 2000,
					() => void inTurn(look).catch((error) => log.warn("config.unreadable", { error: String(error) })),
				);

	const secrets = () => [
		...new Set([
			...secretTexts(inForce.config),
			...(environment.token ? [environment.token] : []),
			...(environment.openai.apiKey ? [environment.openai.apiKey] : []),
		]),
	];

	return {
		current: () => inForce.config,
		errors: () => withoutSecrets([...fileProblems, ...inForce.warnings, ...environment.problems], secrets()),
		withoutEffect: () => inForce.withoutEffect,
		safeMode: () => fileProblems.length > 0,
		restartNeeded: () => needRestart(changedPaths(booted, inForce.config)),
		onChange(listener) {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		secrets,
		read: () => effective(maskSecrets(inForce.shown) as Plain, environment),
		write: (config) => inTurn(() => change((shown) => withoutEnvironment(config, shown, environment))),
		set: (changes) => inTurn(() => change((shown) => withSingleKeys(shown, changes))),
		resolveModel(entry) {
			const lost: Path[] = [];
			const restored = restoreSecrets({ models: [entry] }, { models: sameEntryFirst(inForce.shown.models, entry.id) }, lost) as Plain;
			if (lost.length > 0) throw new ConfigInvalid(lost.map((at) => ({ key: keyOf(at), line: null, message: lostSecret })));
			const unset: Unset[] = [];
			const expanded = expandVariables(restored, environment.lookup, unset);
			if (unset.length > 0)
				throw new ConfigInvalid(
					unset.map(({ path: at, variable }) => ({
						key: keyOf(at),
						line: null,
						message: `the environment variable ${variable} is not set`,
					})),
				);
			const parsed = parseConfig(JSON.stringify(escapeVariables(expanded)), {
				...environment,
				openai: { apiKey: null, baseUrl: null, model: null },
			});
			const model = parsed.config?.models[0];
			if (!model) throw new ConfigInvalid(parsed.errors.map((error) => ({ ...error, line: null })));
			return model;
		},
		reload: () => inTurn(look),
		async close() {
			stopWatching();
			listeners.clear();
			await busy;
		},
	};
}

function defaultsOnly(environment: Environment): ParsedConfig & { config: Config } {
	const parsed = parseConfig("", environment);
	if (parsed.config) return { ...parsed, config: parsed.config };
	// Only the environment can be wrong here: what it sets is said and left out.
	environment.problems.push(...parsed.errors);
	const plain = parseConfig("", { ...environment, host: null, port: null, openai: { apiKey: null, baseUrl: null, model: null } });
	if (!plain.config) throw new Error("the defaults do not fit the schema");
	return { ...plain, config: plain.config };
}

export function say(problem: ConfigProblem): string {
	return `${problem.key}${problem.line === null ? "" : ` (line ${problem.line})`}: ${problem.message}`;
}

async function readConfig(path: string): Promise<Reading> {
	try {
		const bytes = await readFile(path);
		const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
		if (bytes.length === 0)
			return {
				text,
				problem: { key: "config.yaml", line: null, message: "is empty (0 bytes): it was probably cut off while being written" },
			};
		return { text, problem: null };
	} catch (error) {
		const code = (error as NodeJS.ErrnoException).code;
		if (code === "ENOENT") return { text: null, problem: null };
		const message =
			code === "EISDIR"
				? "is a folder; it must be a file"
				: code === "ERR_ENCODING_INVALID_ENCODED_DATA"
					? "is damaged: it is not UTF-8 text"
					: `cannot be read (${code ?? String(error)})`;
		return { text: null, problem: { key: "config.yaml", line: null, message } };
	}
}

async function stamp(path: string): Promise<string> {
	try {
		const found = await stat(path, { bigint: true });
		return `${found.mtimeNs} ${found.size} ${found.ino}`;
	} catch {
		return "";
	}
}

/** A damaged file is never overwritten: it is moved aside, and said where. */
async function setAside(path: string, home: string, now: number, log: ConfigLog): Promise<void> {
	if ((await stamp(path)) === "") return;
	const folder = join(home, "backups");
	await mkdir(folder, { recursive: true, mode: 0o700 });
	const kept = join(folder, `config.refused-${new Date(now).toISOString().replace(/[:.]/g, "-")}.yaml`);
	await rename(path, kept);
	log.warn("config.set-aside", { file: kept });
}

/** Notices of the system, gathered for a moment, and a look at the date every `pollMs` where they fail. */
function watchFile(path: string, pollMs: number, changed: () => void): () => void {
	let gathering: NodeJS.Timeout | null = null;
	let watcher: FSWatcher | null = null;
	const soon = () => {
		gathering ??= setTimeout(() => {
			gathering = null;
			changed();
		}, 100).unref();
	};
	try {
		watcher = watch(dirname(path), { persistent: false }, (_event, file) => {
			if (file === null || file === basename(path)) soon();
		});
		watcher.on("error", () => watcher?.close());
	} catch {
		// The folder is not there, or the system has no notices left: the clock below does it.
	}
	const poll = setInterval(changed, pollMs).unref();
	return () => {
		watcher?.close();
		clearInterval(poll);
		if (gathering) clearTimeout(gathering);
	};
}

/** What the environment overrides is shown as it is in force. */
function effective(shown: Plain, environment: Environment): Plain {
	const server = { ...(shown.server as Plain) };
	if (environment.host !== null) server.host = environment.host;
	if (environment.port !== null) server.port = environment.port;
	return { ...shown, server };
}

/** The reverse of `effective`: a value that only the environment gave is not written into the file. */
function withoutEnvironment(config: Record<string, unknown>, shown: Plain, environment: Environment): Plain {
	if (!isPlain(config.server)) return { ...config };
	const kept = shown.server as Plain;
	const server = { ...config.server };
	if (environment.host !== null && server.host === environment.host) server.host = kept.host;
	if (environment.port !== null && server.port === environment.port) server.port = kept.port;
	return { ...config, server };
}

/** Lays single values over what is shown: `heartbeat.every`, `models`, `models.main.apiKeys` (an entry by its id or number). */
function withSingleKeys(shown: Plain, changes: Record<string, unknown>): Plain {
	const result = structuredClone(shown);
	for (const [key, value] of Object.entries(changes)) {
		const parts = key.split(".");
		let node: unknown = result;
		for (const part of parts.slice(0, -1)) {
			if (Array.isArray(node)) node = node.find((entry) => isPlain(entry) && entry.id === part) ?? node[Number(part)];
			else if (isPlain(node)) node = node[part] ??= {};
			if (typeof node !== "object" || node === null)
				throw new ConfigInvalid([{ key, line: null, message: `there is no "${part}" to set a key in` }]);
		}
		(node as Plain)[parts.at(-1) ?? ""] = value;
	}
	return result;
}

/** The kept entry of the same id at the front, where the sent one stands; the others after it, for a renamed entry's keys. */
function sameEntryFirst(kept: unknown, id: unknown): unknown[] {
	const entries = Array.isArray(kept) ? kept : [];
	return [
		...entries.filter((entry) => isPlain(entry) && entry.id === id),
		...entries.filter((entry) => !isPlain(entry) || entry.id !== id),
	];
}

function escapeVariables(value: unknown): unknown {
	if (typeof value === "string") return value.replaceAll("${", "$${");
	if (Array.isArray(value)) return value.map(escapeVariables);
	return isPlain(value) ? Object.fromEntries(Object.entries(value).map(([key, child]) => [key, escapeVariables(child)])) : value;
}
