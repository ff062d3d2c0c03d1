/**
 * What config.yaml may hold, after the defaults were laid under it. Unknown keys are refused everywhere but in the entries
 * of channels whose keys are their platforms' own.
 */
import { z } from "zod";
import { isTimezone } from "./environment.ts";
import { parseDuration, parseSize } from "./units.ts";

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i;

/** A value that is understood by a function of ours; what it does not understand is refused with `expected`. */
function parsed<T>(expected: string, parse: (value: unknown) => T | null) {
	return z.unknown().transform((value, context): T => {
		const result = parse(value);
		if (result !== null) return result;
		context.issues.push({ code: "custom", message: `must be ${expected}`, input: value });
		return z.NEVER;
	});
}

const fromText = (value: unknown) => (typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : value);
const number = (min: number, max = Number.MAX_SAFE_INTEGER) => z.preprocess(fromText, z.number().min(min).max(max));
const whole = (min: number, max = Number.MAX_SAFE_INTEGER) => z.preprocess(fromText, z.number().int().min(min).max(max));
const flag = () => z.preprocess((value) => (value === "true" ? true : value === "false" ? false : value), z.boolean());
const text = () => z.string();
const name = () => z.string().min(1);
const oneOf = <const T extends readonly [string, ...string[]]>(...values: T) => z.enum(values);
/** As `oneOf`, with YAML's `false` standing for "off". */
const offOr = <const T extends readonly [string, ...string[]]>(...values: T) =>
	z.preprocess((value) => (value === false ? "off" : value), z.enum(values));
const duration = (minMs: number) =>
	parsed(`a duration such as 10s, 5m, 2h or 40d (at least ${minMs} ms)`, (value) => {
		const ms = parseDuration(value);
		return ms !== null && ms >= minMs ? ms : null;
	});
const size = (min: number) =>
	parsed("a number such as 128000, 128k or 1M", (value) => {
		const count = parseSize(value);
		return count !== null && count >= min ? count : null;
	});
const url = (...schemes: string[]) =>
	parsed(`an address that begins with ${schemes.map((scheme) => `${scheme}://`).join(" or ")}`, (value) => {
		if (typeof value !== "string" || !schemes.some((scheme) => value.toLowerCase().startsWith(`${scheme}://`))) return null;
		return URL.canParse(value) ? value : null;
	});
const accountId = () => z.preprocess((value) => (typeof value === "number" ? String(value) : value), z.string().min(1));
const modelRef = () => z.string().min(1).nullable();

const channelCommon = () => ({
	id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "must be a short name of letters, digits, dot, dash or underscore"),
	enabled: flag(),
	masters: z.array(accountId()),
	allow: z.array(accountId()),
	pairing: flag(),
	profile: z.string().nullable(),
	debounceMs: whole(0, 600_000),
	groups: z.record(z.string(), z.strictObject({ enabled: flag(), trigger: oneOf("mention", "all", "command"), atAll: flag() })),
});

const mailSecurity = () => ({
	host: name(),
	port: whole(1, 65_535),
	security: oneOf("tls", "starttls", "none"),
	user: text(),
	password: text(),
	insecure: flag(),
});

const plainMailOnlyHere = (server: { host: string; security: string; insecure: boolean }) =>
	server.security !== "none" || server.insecure || loopback.test(server.host);
const plainMailRefusal = { path: ["security"], message: "may be none only for a server on this machine, or with insecure: true" };

const knownChannels = () => ({
	telegram: z
		.array(
			z.strictObject({
				...channelCommon(),
				token: text(),
				apiRoot: url("https", "http"),
				mode: oneOf("poll", "webhook"),
				streaming: oneOf("final", "edits"),
			}),
		)
		.optional(),
	onebot: z
		.array(
			z
				.strictObject({
					...channelCommon(),
					mode: oneOf("reverse", "forward"),
					url: url("ws", "wss").nullable(),
					accessToken: text(),
					paceMs: whole(0, 600_000),
					heartbeatTimeoutS: whole(1, 86_400),
				})
				.refine((entry) => entry.mode !== "forward" || entry.url !== null, { path: ["url"], message: "is needed with mode: forward" }),
		)
		.optional(),
	email: z
		.array(
			z.strictObject({
				...channelCommon(),
				address: z.string().regex(/^[^@\s]+@[^@\s]+$/, "must be a mail address"),
				imap: z.strictObject({ ...mailSecurity(), mailbox: name() }).refine(plainMailOnlyHere, plainMailRefusal),
				smtp: z.strictObject(mailSecurity()).refine(plainMailOnlyHere, plainMailRefusal),
				authservId: z.string().nullable(),
				pollS: whole(1, 86_400),
				minReplyIntervalS: whole(0, 86_400),
			}),
		)
		.optional(),
	webhook: z.array(z.strictObject({ ...channelCommon(), secret: text(), url: url("https", "http").nullable() })).optional(),
});

/** Channels whose entries carry their platforms' own keys. */
const openChannelTypes = ["wecom", "weixin", "wechat-official", "qq-official", "discord", "slack", "feishu", "dingtalk", "voice"] as const;
const openChannels = () => {
	const entry = () => z.array(z.looseObject(channelCommon())).optional();
	return {
		wecom: entry(),
		weixin: entry(),
		"wechat-official": entry(),
		"qq-official": entry(),
		discord: entry(),
		slack: entry(),
		feishu: entry(),
		dingtalk: entry(),
		voice: entry(),
	} satisfies Record<(typeof openChannelTypes)[number], unknown>;
};

const capability = () => oneOf("chat", "memory", "web", "files", "send", "code", "schedules", "jobs", "settings");
const approval = () => oneOf("allow", "ask", "deny");
const filterAction = () => offOr("off", "mask", "replace", "block", "hold");

const mcpServer = () =>
	z
		.strictObject({
			command: name().optional(),
			args: z.array(z.preprocess((value) => (typeof value === "number" ? String(value) : value), text())).optional(),
			env: z
				.record(
					z.string(),
					z.preprocess((value) => (typeof value === "number" || typeof value === "boolean" ? String(value) : value), text()),
				)
				.optional(),
			url: url("https", "http").optional(),
			headers: z.record(z.string(), text()).optional(),
			enabled: flag(),
			approval: oneOf("ask", "never"),
			sandbox: oneOf("auto", "bwrap", "docker", "firejail", "sandbox-runtime", "wasm", "none"),
			timeoutS: whole(1, 86_400),
		})
		.refine((server) => (server.command === undefined) !== (server.url === undefined), { message: "needs either command or url" });

export const providers = [
	"openai",
	"anthropic",
	"google",
	"xai",
	"deepseek",
	"openrouter",
	"dashscope",
	"moonshot",
	"zhipu",
	"siliconflow",
	"ollama",
	"llamacpp",
	"lmstudio",
	"custom",
] as const;

const model = () =>
	z
		.strictObject({
			id: z.string().regex(/^[^\s/]{1,64}$/, "must be a short name without spaces"),
			provider: oneOf(...providers),
			model: name(),
			baseUrl: url("https", "http").nullable(),
			apiKeys: z.array(text()),
			kind: oneOf("text", "multimodal", "image", "tts", "stt", "embedding"),
			contextTokens: size(256).nullable(),
			price: z
				.strictObject({
					input: number(0),
					cachedInput: number(0).optional(),
					output: number(0),
					currency: z
						.string()
						.regex(/^[A-Z]{3}$/, "must be a currency such as USD or CNY")
						.optional(),
				})
				.nullable(),
			limits: z.strictObject({
				connectMs: duration(1),
				firstByteMs: duration(1),
				idleMs: duration(1),
				totalMs: duration(1),
				maxOutputTokens: size(1),
			}),
		})
		.refine((entry) => entry.provider !== "custom" || entry.baseUrl !== null, {
			path: ["baseUrl"],
			message: "is needed with provider: custom",
		});

/** One schema a section. A section is built when a file first speaks of it: zod is not free, and start must be quick. */
export const sections = {
	server: () => z.strictObject({ host: name(), port: whole(0, 65_535), publicUrl: url("https", "http").nullable() }),
	locale: () => oneOf("zh-CN", "en").nullable(),
	timezone: () =>
		parsed("a time zone such as Asia/Shanghai or Europe/Berlin", (value) =>
			typeof value === "string" && isTimezone(value) ? value : null,
		).nullable(),
	models: () => z.array(model()),
	roles: () =>
		z.strictObject({
			chat: z.preprocess((value) => (typeof value === "string" ? [value] : value === null ? [] : value), z.array(name())),
			small: modelRef(),
			critique: modelRef(),
			vision: modelRef(),
			image: modelRef(),
			tts: modelRef(),
			stt: modelRef(),
			embedding: modelRef(),
		}),
	alerts: () =>
		z.strictObject({
			deliverTo: z.union([z.null(), z.strictObject({ conversation: name() }), z.strictObject({ channel: name(), to: accountId() })]),
			webhook: z.strictObject({ url: url("https", "http"), secret: z.string() }).nullable(),
		}),
	observe: () =>
		z.strictObject({
			callDays: number(0),
			callMb: number(1),
			eventDays: number(0),
			otlp: z.strictObject({ endpoint: url("https", "http"), headers: z.record(z.string(), z.string()).optional() }).nullable(),
		}),
	budget: () =>
		z.strictObject({
			dailyTokens: size(0).nullable(),
			dailyCost: number(0).nullable(),
			warnAt: z.array(number(0, 1)),
			reserveForPeople: number(0, 1),
			currency: z.string().regex(/^[A-Z]{3}$/, "must be a currency such as USD or CNY"),
			exchange: z.record(z.string().regex(/^[A-Z]{3}$/, "must be a currency such as USD or CNY"), number(0)),
			whenBlown: oneOf("wait", "decline"),
		}),
	memory: () =>
		z.strictObject({
			exchanges: whole(1, 100),
			compress: whole(1, 100),
			summaryLines: whole(0, 200),
			archive: whole(1, 200),
			recallSemantic: whole(0, 50),
			recallKeyword: whole(0, 50),
			/** Directory of an embedding model on this machine; relative to the home. */
			localModel: name().nullable(),
		}),
	agent: () =>
		z.strictObject({
			maxSteps: whole(1, 10_000),
			maxRounds: whole(1, 1000),
			plan: offOr("auto", "always", "off"),
			critique: z.strictObject({ mode: offOr("auto", "always", "off"), maxRounds: whole(0, 20) }),
		}),
	heartbeat: () =>
		z.strictObject({
			enabled: flag(),
			every: duration(1000),
			activeHours: z
				.string()
				.regex(/^([01]?\d|2[0-4]):[0-5]\d\s*-\s*([01]?\d|2[0-4]):[0-5]\d$/, "must be written like 08:00-23:00")
				.nullable(),
			freeTimePerDay: whole(0, 1000),
			deliverTo: z.union([z.null(), z.strictObject({ conversation: name() }), z.strictObject({ channel: name(), to: accountId() })]),
		}),
	channels: () => z.strictObject({ ...knownChannels(), ...openChannels() }),
	people: () =>
		z.strictObject({ pairingMinutes: number(1), dailyShare: z.strictObject({ stranger: size(0), known: size(0), group: size(0) }) }),
	mcp: () =>
		z.strictObject({ servers: z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "must be a short name"), mcpServer()) }),
	safety: () =>
		z.strictObject({
			sandbox: oneOf("auto", "bwrap", "docker", "firejail", "sandbox-runtime", "wasm", "none"),
			sandboxLimits: z.strictObject({
				timeoutS: number(1),
				cpuS: number(1),
				memoryMb: whole(16),
				processes: whole(1),
				fileMb: number(0),
				outputKb: number(1),
				network: flag(),
			}),
			egress: z.strictObject({
				allow: z.array(z.string().regex(/^(\[[0-9a-fA-F:.]+\]|[^\s:/]+):\d{1,5}$/, "must be host:port")),
				maxBytes: size(1),
				timeoutS: number(0.1),
				maxRedirects: whole(0, 50),
			}),
			filter: z.strictObject({
				lists: z.record(z.string(), z.strictObject({ file: name() })),
				profiles: z.record(
					z.string(),
					z.strictObject({
						lists: z.record(z.string(), filterAction()),
						secrets: filterAction(),
						cards: filterAction(),
						ids: filterAction(),
						phones: filterAction(),
						emails: filterAction(),
					}),
				),
			}),
			approvals: z.strictObject({ expiresS: number(1), automatic: oneOf("deny", "ask"), tools: z.record(z.string(), approval()) }),
			permissions: z.strictObject({
				master: z.array(capability()),
				trusted: z.array(capability()),
				known: z.array(capability()),
				stranger: z.array(capability()),
				group: z.array(capability()),
			}),
		}),
	web: () =>
		z.strictObject({
			search: z.strictObject({
				provider: oneOf("searxng", "tavily", "brave"),
				url: url("https", "http").nullable(),
				apiKey: z.string().nullable(),
			}),
		}),
	extensions: () =>
		z.strictObject({
			functions: z.strictObject({ approval: oneOf("ask", "never") }),
			lessons: z.strictObject({ perTurn: whole(0, 100), perConversation: whole(0, 1000), tokens: size(0) }),
		}),
};

type Sections = typeof sections;
export type SectionName = keyof Sections;
type Parsed = { [K in SectionName]: z.infer<ReturnType<Sections[K]>> };

/** The whole configuration, checked, with every default filled in. Durations are ms, sizes are numbers. */
export type Config = Omit<Parsed, "timezone"> & { timezone: string };

const built = new Map<SectionName, z.ZodType>();

export function sectionSchema(section: SectionName): z.ZodType {
	const known = built.get(section);
	if (known) return known;
	const schema: z.ZodType = sections[section]();
	built.set(section, schema);
	return schema;
}
