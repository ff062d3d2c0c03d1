/** Every default, as a person would write it. config.yaml is laid over this, the environment over both. */

export type Plain = { [key: string]: unknown };

export const defaults: Plain = {
	server: { host: "127.0.0.1", port: 7717, publicUrl: null },
	locale: null,
	timezone: null,
	models: [],
	roles: { chat: [], small: null, critique: null, vision: null, image: null, tts: null, stt: null, embedding: null },
	budget: {
		dailyTokens: 2_000_000,
		dailyCost: null,
		warnAt: [0.5, 0.8],
		reserveForPeople: 0.2,
		currency: "USD",
		exchange: {},
		whenBlown: "wait",
	},
	alerts: { deliverTo: null, webhook: null },
	observe: { callDays: 30, callMb: 512, eventDays: 30, otlp: null },
	memory: { exchanges: 8, compress: 4, summaryLines: 12, archive: 4, recallSemantic: 2, recallKeyword: 2, localModel: null },
	agent: { maxSteps: 60, maxRounds: 3, plan: "auto", critique: { mode: "auto", maxRounds: 3 } },
	heartbeat: { enabled: true, every: "30m", activeHours: "08:00-23:00", freeTimePerDay: 2, deliverTo: null },
	channels: {},
	people: { pairingMinutes: 60, dailyShare: { stranger: 20_000, known: 200_000, group: 100_000 } },
	mcp: { servers: {} },
	safety: {
		sandbox: "auto",
		sandboxLimits: { timeoutS: 60, cpuS: 60, memoryMb: 512, processes: 64, fileMb: 50, outputKb: 64, network: false },
		egress: { allow: [], maxBytes: 10_000_000, timeoutS: 20, maxRedirects: 5 },
		filter: {
			lists: { house: { file: "filter/house.txt" } },
			profiles: {
				private: { lists: { house: "mask" }, secrets: "mask", cards: "off", ids: "off", phones: "off", emails: "off" },
				social: { lists: { house: "mask" }, secrets: "mask", cards: "mask", ids: "mask", phones: "mask", emails: "off" },
				public: { lists: { house: "block" }, secrets: "mask", cards: "mask", ids: "mask", phones: "mask", emails: "mask" },
			},
		},
		approvals: { expiresS: 900, automatic: "deny", tools: { run_shell: "ask", run_python: "ask" } },
		permissions: {
			master: ["chat", "memory", "web", "files", "send", "code", "schedules", "jobs", "settings"],
			trusted: ["chat", "memory", "web", "files", "schedules"],
			known: ["chat", "memory", "web"],
			stranger: ["chat"],
			group: ["chat", "web"],
		},
	},
	web: { search: { provider: "searxng", url: null, apiKey: null } },
	extensions: { functions: { approval: "ask" }, lessons: { perTurn: 5, perConversation: 20, tokens: 4000 } },
};

const channelDefaults: Plain = { enabled: true, masters: [], allow: [], pairing: true, profile: null, debounceMs: 1500, groups: {} };
const mailServer = (port: number): Plain => ({ host: "127.0.0.1", port, security: "tls", user: "", password: "", insecure: false });

/** Defaults of the entries of lists and maps: path pattern (`*` = any key) -> what is laid under each entry. */
export const entryDefaults: Record<string, Plain> = {
	"models.*": {
		baseUrl: null,
		apiKeys: [],
		kind: "text",
		contextTokens: null,
		price: null,
		limits: { connectMs: 5000, firstByteMs: 120_000, idleMs: 60_000, totalMs: 600_000, maxOutputTokens: 8192 },
	},
	"channels.*.*": channelDefaults,
	"channels.*.*.groups.*": { enabled: true, trigger: "mention", atAll: false },
	"channels.telegram.*": { apiRoot: "https://api.telegram.org", mode: "poll", streaming: "final" },
	"channels.onebot.*": { mode: "reverse", url: null, accessToken: "", paceMs: 1000, heartbeatTimeoutS: 90 },
	"channels.email.*": {
		authservId: null,
		pollS: 60,
		minReplyIntervalS: 60,
		imap: { ...mailServer(993), mailbox: "INBOX" },
		smtp: mailServer(465),
	},
	"channels.webhook.*": { url: null },
	"mcp.servers.*": { enabled: true, approval: "ask", sandbox: "auto", timeoutS: 60 },
	"safety.filter.profiles.*": { lists: {}, secrets: "mask", cards: "off", ids: "off", phones: "off", emails: "off" },
};

/** Places whose keys people choose: a key that is gone from a written configuration is removed there, elsewhere it stays. */
export const records: string[] = [
	"channels",
	"channels.*.*.groups",
	"mcp.servers",
	"mcp.servers.*",
	"mcp.servers.*.env",
	"mcp.servers.*.headers",
	"safety.filter.lists",
	"safety.filter.profiles",
	"safety.filter.profiles.*.lists",
	"safety.approvals.tools",
];

const splitPatterns = new Map<string, string[]>();

export function matchesPath(pattern: string, path: readonly (string | number)[]): boolean {
	let parts = splitPatterns.get(pattern);
	if (!parts) {
		parts = pattern.split(".");
		splitPatterns.set(pattern, parts);
	}
	return parts.length === path.length && parts.every((part, index) => part === "*" || part === String(path[index]));
}

export function isPlain(value: unknown): value is Plain {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function copy(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(copy);
	return isPlain(value) ? Object.fromEntries(Object.entries(value).map(([key, child]) => [key, copy(child)])) : value;
}

/** `over` laid over `under`: maps are merged, everything else is replaced; an empty section (null) leaves the defaults. */
export function layOver(under: unknown, over: unknown): unknown {
	if (over === undefined) return copy(under);
	if (isPlain(under)) {
		if (over === null) return copy(under);
		if (!isPlain(over)) return over;
		const merged: Plain = {};
		for (const key of new Set([...Object.keys(over), ...Object.keys(under)])) merged[key] = layOver(under[key], over[key]);
		return merged;
	}
	return over;
}

const withEntries = new Set(Object.keys(entryDefaults).map((pattern) => pattern.split(".", 1)[0]));

/** Lays the defaults under every entry of a list or map that has some, in place of the value at `path` and below. */
export function layEntryDefaults(value: unknown, path: (string | number)[] = []): unknown {
	let result = value;
	if (isPlain(result)) {
		for (const [pattern, under] of Object.entries(entryDefaults)) if (matchesPath(pattern, path)) result = layOver(under, result);
		const mapped: Plain = {};
		for (const [key, child] of Object.entries(result as Plain))
			mapped[key] = path.length > 0 || withEntries.has(key) ? layEntryDefaults(child, [...path, key]) : child;
		return mapped;
	}
	if (Array.isArray(result)) return result.map((child, index) => layEntryDefaults(child, [...path, index]));
	return result;
}
