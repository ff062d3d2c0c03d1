/** From the text of config.yaml and the environment to a checked configuration, with every problem named by key and line. */
import { type Document, isMap, LineCounter, parseDocument } from "yaml";
import { defaults, isPlain, layEntryDefaults, layOver, type Plain } from "./defaults.ts";
import type { ConfigProblem, Environment } from "./environment.ts";
import { expandVariables, type Path, type Unset } from "./expand.ts";
import { keyOf, lineOf, problemsOf } from "./issues.ts";
import { nearest } from "./nearest.ts";
import { type Config, type SectionName, sectionSchema, sections } from "./schema.ts";
import { isOff, parseDuration } from "./units.ts";
import { withoutEffect } from "./without-effect.ts";

/** Id of the model that the environment alone describes. */
export const environmentModelId = "env";
/** Used when the environment gives an OpenAI key but names no model. */
const defaultOpenaiModel = "gpt-5-mini";

export interface ParsedConfig {
	/** Null when something is wrong that leaves no usable configuration. */
	config: Config | null;
	/** As written, defaults laid under it, variables not put in: what people see and edit. */
	shown: Plain;
	document: Document;
	/** What made `config` null. */
	errors: ConfigProblem[];
	/** What is wrong but harms only its own key: a variable that is not set. */
	warnings: ConfigProblem[];
	/** What is right and changes nothing in this version. */
	withoutEffect: ConfigProblem[];
}

export function parseConfig(source: string, environment: Environment): ParsedConfig {
	const text = source.replace(/^\uFEFF/, "");
	const lines = new LineCounter();
	const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, intAsBigInt: true, logLevel: "silent" });
	const failed = (errors: ConfigProblem[]): ParsedConfig => ({
		config: null,
		shown: {},
		document,
		errors,
		warnings: [],
		withoutEffect: [],
	});
	if (text.includes("\0")) return failed([{ key: "config.yaml", line: null, message: "is damaged: it holds zero bytes" }]);
	if (document.errors.length > 0) {
		return failed(
			document.errors.map((error) => ({ key: "config.yaml", line: lines.linePos(error.pos[0]).line, message: firstLine(error.message) })),
		);
	}
	if (document.contents !== null && !isMap(document.contents) && document.toJS() !== null) {
		return failed([{ key: "config.yaml", line: 1, message: "must hold sections such as `models:` and `server:`" }]);
	}
	let written: unknown;
	try {
		written = plainNumbers(document.toJS() ?? {});
	} catch (error) {
		return failed([{ key: "config.yaml", line: null, message: firstLine(error instanceof Error ? error.message : String(error)) }]);
	}

	const lineAt = (path: Path) => lineOf(document.contents, lines, path);
	const shown = layEntryDefaults(layOver(defaults, heartbeatAsSection(written as Plain))) as Plain;
	const unset: Unset[] = [];
	const withVariables = expandVariables(shown, environment.lookup, unset) as Plain;
	const filled = overlayEnvironment(layEntryDefaults(layOver(defaults, withVariables)) as Plain, environment);

	const spoken = new Set<string>([
		...Object.keys(written as Plain),
		...(environment.host !== null || environment.port !== null ? ["server"] : []),
	]);
	const { values, errors: refused } = checkSections(filled, spoken, unset, lineAt);
	const warnings = unset.map(({ path, variable }) => ({
		key: keyOf(path),
		line: lineAt(path),
		message: `the environment variable ${variable} is not set`,
	}));
	if (refused.length > 0) return { ...failed(refused), shown, warnings };

	const config = { ...values, timezone: values.timezone ?? environment.timezone } as Config;
	const errors = crossChecks(config).map(({ path, message }) => ({ key: keyOf(path), line: lineAt(path), message }));
	preferEnvironmentModel(config, environment);
	return { config: errors.length === 0 ? config : null, shown, document, errors, warnings, withoutEffect: withoutEffect(shown, lineAt) };
}

/** Checks the sections that the file or the environment speak of; the others are the defaults, which need no check. */
function checkSections(
	filled: Plain,
	spoken: Set<string>,
	unset: Unset[],
	lineAt: (path: Path) => number | null,
): { values: Plain; errors: ConfigProblem[] } {
	const values: Plain = {};
	const errors: ConfigProblem[] = [];
	const names = Object.keys(sections);
	for (const key of Object.keys(filled)) {
		if (names.includes(key)) continue;
		const meant = nearest(key, names);
		errors.push({
			key,
			line: lineAt([key]),
			message: `unknown key "${key}"; ${meant ? `did you mean "${meant}"?` : `known here: ${names.join(", ")}`}`,
		});
	}
	for (const section of names as SectionName[]) {
		if (!spoken.has(section)) {
			values[section] = settled(section, filled[section]);
			continue;
		}
		const schema = sectionSchema(section);
		let result = schema.safeParse(filled[section]);
		const pathOf = (issue: { path: PropertyKey[] }) => [section, ...issue.path] as Path;
		const needed = unset.filter(({ path }) => !result.success && result.error.issues.some((issue) => keyOf(pathOf(issue)) === keyOf(path)));
		if (needed.length > 0) {
			for (const { path } of needed) put(filled, path, "");
			result = schema.safeParse(filled[section]);
		}
		if (result.success) values[section] = result.data;
		else errors.push(...problemsOf(result.error.issues, section, filled[section], schema, lineAt));
	}
	return { values, errors };
}

/** A default section in the form that its schema would give it. */
export function settled(section: SectionName, value: unknown): unknown {
	return section === "heartbeat" && isPlain(value) ? { ...value, every: parseDuration(value.every) } : value;
}

const firstLine = (text: string) => text.split("\n", 1)[0] ?? text;

/** Whole numbers come as BigInt so that long account ids keep every digit; those that fit become numbers again. */
function plainNumbers(value: unknown): unknown {
	if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
	if (Array.isArray(value)) return value.map(plainNumbers);
	if (isPlain(value)) return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, plainNumbers(child)]));
	return value;
}

/** All the ways to switch the heartbeat off become `enabled: false`. */
export function heartbeatAsSection(written: Plain): Plain {
	if (!("heartbeat" in written)) return written;
	const value = written.heartbeat;
	if (value === null || isOff(value) || (isPlain(value) && Object.keys(value).length === 0))
		return { ...written, heartbeat: { enabled: false } };
	if (value === true || value === "on") return { ...written, heartbeat: { enabled: true } };
	if (!isPlain(value)) return written;
	const section: Plain = { ...value };
	if ("enabled" in section && isOff(section.enabled)) section.enabled = false;
	if ("every" in section && isOff(section.every)) {
		delete section.every;
		section.enabled = false;
	}
	return { ...written, heartbeat: section };
}

function overlayEnvironment(config: Plain, environment: Environment): Plain {
	const server = isPlain(config.server) ? { ...config.server } : config.server;
	if (isPlain(server)) {
		if (environment.host !== null) server.host = environment.host;
		if (environment.port !== null) server.port = environment.port;
	}
	return { ...config, server };
}

/**
 * `OPENLANI_MODEL` or `OPENAI_BASE_URL` put the environment's model before the file's; a key alone names no model, so it
 * serves only where the file has none. `OPENLANI_MODEL` may also name a model of the file.
 */
function preferEnvironmentModel(config: Config, environment: Environment): void {
	const { apiKey, baseUrl, model } = environment.openai;
	if (apiKey === null && baseUrl === null && model === null) return;
	const chat = chatModels(config);
	const named =
		model === null
			? undefined
			: (config.models.find((entry) => entry.id === model) ??
				(baseUrl === null ? config.models.find((entry) => entry.model === model) : undefined));
	if (named) {
		config.roles.chat = [named.id, ...chat.filter((id) => id !== named.id)];
		return;
	}
	if ((apiKey === null && baseUrl === null) || (model === null && baseUrl === null && chat.length > 0)) return;
	const id = config.models.some((entry) => entry.id === environmentModelId) ? `${environmentModelId}-openai` : environmentModelId;
	const entry = layEntryDefaults({
		models: [
			{
				id,
				provider: baseUrl === null ? "openai" : "custom",
				model: model ?? defaultOpenaiModel,
				baseUrl,
				apiKeys: apiKey === null ? [] : [apiKey],
			},
		],
	}) as { models: Config["models"] };
	config.models = [...config.models, ...entry.models];
	config.roles.chat = [id, ...chat];
}

/** Ids of the models that answer people, in fallback order: as written, or every text and multimodal model. */
export function chatModels(config: Pick<Config, "models" | "roles">): string[] {
	if (config.roles.chat.length > 0) return config.roles.chat;
	return config.models.filter((entry) => entry.kind === "text" || entry.kind === "multimodal").map((entry) => entry.id);
}

/** What the schema cannot see: names that must be unique, and names that must exist. */
function crossChecks(config: Config): { path: Path; message: string }[] {
	const found: { path: Path; message: string }[] = [];
	const ids = config.models.map((entry) => entry.id);
	for (const [index, id] of ids.entries())
		if (ids.indexOf(id) !== index) found.push({ path: ["models", index, "id"], message: `"${id}" is the id of another model too` });
	const missing = (path: Path, id: string, known: string[], what: string) => {
		const meant = nearest(id, known);
		found.push({
			path,
			message: `there is no ${what} "${id}"${meant ? `; did you mean "${meant}"?` : known.length > 0 ? `; known: ${known.join(", ")}` : ""}`,
		});
	};
	for (const [role, value] of Object.entries(config.roles)) {
		if (typeof value === "string" && !ids.includes(value)) missing(["roles", role], value, ids, "model");
		if (Array.isArray(value))
			for (const [index, id] of value.entries()) if (!ids.includes(id)) missing(["roles", role, index], id, ids, "model");
	}
	const channelIds = new Set(["web", "internal", "api", "cli"]);
	const profiles = Object.keys(config.safety.filter.profiles);
	for (const [type, entries] of Object.entries(config.channels)) {
		for (const [index, entry] of (entries ?? []).entries()) {
			const path: Path = ["channels", type, index];
			if (channelIds.has(entry.id))
				found.push({ path: [...path, "id"], message: `"${entry.id}" is taken: every channel needs an id of its own` });
			channelIds.add(entry.id);
			if (entry.profile !== null && !profiles.includes(entry.profile))
				missing([...path, "profile"], entry.profile, profiles, "filter profile");
		}
	}
	const lists = Object.keys(config.safety.filter.lists);
	for (const [profile, value] of Object.entries(config.safety.filter.profiles)) {
		for (const list of Object.keys(value.lists))
			if (!lists.includes(list)) missing(["safety", "filter", "profiles", profile, "lists", list], list, lists, "filter list");
	}
	return found;
}

function put(target: Plain, path: Path, value: unknown): void {
	let node: unknown = target;
	for (const part of path.slice(0, -1)) node = (node as Record<string | number, unknown>)?.[part];
	const last = path.at(-1);
	if (typeof node === "object" && node !== null && last !== undefined) (node as Record<string | number, unknown>)[last] = value;
}
