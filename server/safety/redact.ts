/** Takes secrets out of everything that is written, shown or sent: logs, frames, errors, prompts, tool output, reports. */

export interface Redactor {
	/** Makes values secret from now on, in every form in which they may be written down. Values under six characters are ignored: they would tear holes into plain words. */
	add(values: Iterable<string>): void;
	/** Replaces the whole set of known values (after the configuration was read again). */
	replace(values: Iterable<string>): void;
	/** The text without any known secret, and without what looks like one. Never throws. */
	text(text: string): string;
	/**
	 * As `text`, for texts that come one after the other and begin alike (requests of one kind): what the last one began with, and what
	 * was clean then, is not looked at again.
	 */
	alike(): (text: string) => string;
	/** A copy of plain data without secrets: every string is cleaned, values under secret-looking names are replaced. Depth and cycles are bounded. */
	data<T>(value: T): T;
	/** Cleans a text that comes in pieces: what could still become a secret is held back until it is known. */
	stream(): { push(text: string): string; end(): string };
}

const mark = "[redacted]";
const shortestSecret = 6;
const deepest = 24;

/** Names whose value is a secret whatever it looks like. Token *counts* (`inputTokens`, `max_tokens`) are not. */
const secretName =
	/^(?:.*[-_])?(?:api[-_]?keys?|access[-_]?token|auth[-_]?token|bot[-_]?token|refresh[-_]?token|id[-_]?token|token|authorization|proxy[-_]?authorization|password|passwd|passphrase|secret|client[-_]?secret|private[-_]?key|encoding[-_]?aes[-_]?key|cookie|set[-_]?cookie|x[-_]api[-_]key|x[-_]subscription[-_]token)$/i;
/** The same in camel case, where no hyphen parts the words: `tgToken`, `mailPassword`. */
const secretCamel = /[a-z0-9](?:ApiKeys?|Token|Password|Passphrase|Secret|PrivateKey|AesKey|Authorization|Cookie)$/;

interface Shape {
	/** False when the text cannot hold one: much cheaper than looking for it. */
	maybe(text: string): boolean;
	pattern: RegExp;
	replacement: string;
}

/**
 * What is a secret by its shape, even if nobody told us: provider keys, bearer headers, bot tokens in paths, credentials in URLs,
 * private keys. None reaches over a quotation mark, so that JSON stays JSON.
 */
const shapes: Shape[] = [
	{
		maybe: (text) => /[-_][A-Za-z0-9_-]{16}/.test(text),
		pattern: /\b(?:sk|pk|rk|xai|gsk|tvly|hf|glpat|ghp|gho|ghs|xoxb|xoxp|xapp)[-_][A-Za-z0-9_-]{16,}\b/g,
		replacement: mark,
	},
	{ maybe: (text) => text.includes("AIza"), pattern: /\bAIza[A-Za-z0-9_-]{30,}\b/g, replacement: mark },
	{
		maybe: (text) => text.includes("Bearer") || text.includes("Basic") || text.includes("QQBot"),
		pattern: /\b(Bearer|Basic|QQBot)\s+[A-Za-z0-9._~+/=-]{12,}/g,
		replacement: `$1 ${mark}`,
	},
	{ maybe: hasNumberedToken, pattern: /\bbot\d{5,}:[A-Za-z0-9_-]{20,}/g, replacement: `bot${mark}` },
	{ maybe: hasNumberedToken, pattern: /\b\d{8,10}:[A-Za-z0-9_-]{32,}/g, replacement: mark },
	{
		maybe: (text) => text.includes("@") && text.includes("://"),
		pattern: /:\/\/[^\s/@:"'\\<>]{1,256}:[^\s/@"'\\<>]{1,256}@/g,
		replacement: `://${mark}@`,
	},
	{
		maybe: (text) => text.includes("=") && (text.includes("?") || text.includes("&")),
		pattern: /([?&](?:access_token|token|key|api_key|apikey|secret|password|sig|signature)=)[^&\s#"'\\<>]+/gi,
		replacement: `$1${mark}`,
	},
	{
		maybe: (text) => text.includes("PRIVATE KEY"),
		pattern: /-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]{0,20}PRIVATE KEY-----)?/g,
		replacement: mark,
	},
];
const shortestShape = 12;
/** One cheap look decides whether the shapes need to be tried at all. */
const mayHaveShape = /[-_:=@]|AIza|Bearer|Basic|QQBot/;

function hasNumberedToken(text: string): boolean {
	return /\d{5}:[A-Za-z0-9_-]{20}/.test(text);
}

/** Names of data that are remembered, and how long they may be: code has a few, what strangers send has any. */
const mostNames = 1_000;
const longestName = 64;

/** How many characters two texts begin with alike; may answer a few less. */
function sharedLength(one: string, other: string): number {
	const most = Math.min(one.length, other.length);
	let at = 0;
	for (let step = 4_096; step >= 16; step /= 4)
		while (at + step <= most && one.slice(at, at + step) === other.slice(at, at + step)) at += step;
	return at;
}

function quoted(text: string): string {
	return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Every way in which a value may stand in a text: as it is, in JSON, in a URL, in base64 at any of its three alignments. */
function formsOf(value: string): string[] {
	const forms = new Set([value, JSON.stringify(value).slice(1, -1)]);
	try {
		forms.add(encodeURIComponent(value));
	} catch {
		// A lone surrogate has no URL form.
	}
	const bytes = Buffer.from(value, "utf8");
	if (bytes.length >= 12) {
		for (const skip of [0, 1, 2]) {
			const padded = Buffer.concat([Buffer.alloc(skip), bytes]).toString("base64");
			const from = skip === 0 ? 0 : skip + 1;
			const whole = Math.floor(((skip + bytes.length) * 8) / 6);
			const core = padded.slice(from, whole);
			forms.add(core);
			forms.add(core.replaceAll("+", "-").replaceAll("/", "_"));
		}
		forms.add(bytes.toString("hex"));
	}
	return [...forms].filter((form) => form.length >= shortestSecret);
}

export function createRedactor(initial: Iterable<string> = []): Redactor {
	let known = new Set<string>();
	let forms: string[] = [];
	let pattern: RegExp | null = null;
	/** The same for one look. */
	let finder: RegExp | null = null;
	let longest = 0;
	/** A known value holds a quotation mark, and so may reach over one. */
	let quotes = false;
	/** Counts changes of what is known. */
	let version = 0;
	const names = new Map<string, { clean: string; secret: boolean }>();

	function rebuild(): void {
		forms = [...new Set([...known].flatMap(formsOf))].sort((a, b) => b.length - a.length);
		longest = forms[0]?.length ?? 0;
		pattern = forms.length > 0 ? new RegExp(forms.map(quoted).join("|"), "g") : null;
		finder = pattern && new RegExp(pattern.source);
		quotes = forms.some((form) => form.includes('"'));
		version += 1;
		names.clear();
	}

	function insert(values: Iterable<string>): void {
		for (const value of values) if (typeof value === "string" && value.trim().length >= shortestSecret) known.add(value.trim());
	}

	function text(input: string): string {
		if (input.length < shortestSecret) return input;
		let out = pattern && finder?.test(input) ? input.replace(pattern, mark) : input;
		if (out.length < shortestShape || !mayHaveShape.test(out)) return out;
		for (const shape of shapes) if (shape.maybe(out)) out = out.replace(shape.pattern, shape.replacement);
		return out;
	}

	function alike(): (text: string) => string {
		let clean = "";
		let seen = version;
		return (input) => {
			if (seen === version && input === clean) return input;
			const same = seen === version && !quotes ? sharedLength(clean, input) : 0;
			// Cut behind a quotation mark, no secret is cut in two.
			const from = same > 0 ? input.lastIndexOf('"', same - 1) + 1 : 0;
			const rest = from > 0 ? input.slice(from) : input;
			const out = text(rest);
			if (out !== rest) return from > 0 ? input.slice(0, from) + out : out;
			clean = input;
			seen = version;
			return input;
		};
	}

	function copy(value: unknown, depth: number, seen: Set<object>): unknown {
		if (typeof value === "string") return text(value);
		if (value === null || typeof value !== "object") return typeof value === "bigint" ? String(value) : value;
		if (depth > deepest || seen.has(value)) return "[…]";
		if (value instanceof Date || ArrayBuffer.isView(value)) return value;
		seen.add(value);
		let out: unknown;
		if (Array.isArray(value)) out = value.map((item) => copy(item, depth + 1, seen));
		else if (value instanceof Error) {
			const record: Record<string, unknown> = { name: value.name, message: text(value.message) };
			if (value.stack) record.stack = text(value.stack);
			for (const [key, item] of Object.entries(value)) if (!(key in record)) record[key] = field(key, item, depth, seen);
			if (value.cause !== undefined) record.cause = copy(value.cause, depth + 1, seen);
			out = record;
		} else {
			const record: Record<string, unknown> = {};
			for (const [key, item] of Object.entries(value)) record[nameOf(key).clean] = field(key, item, depth, seen);
			out = record;
		}
		seen.delete(value);
		return out;
	}

	function nameOf(key: string): { clean: string; secret: boolean } {
		const known = names.get(key);
		if (known) return known;
		const made = { clean: text(key), secret: secretName.test(key) || secretCamel.test(key) };
		if (key.length <= longestName && names.size < mostNames) names.set(key, made);
		return made;
	}

	function field(key: string, item: unknown, depth: number, seen: Set<object>): unknown {
		if (nameOf(key).secret) {
			if (typeof item === "string") return item === "" ? "" : mark;
			if (Array.isArray(item) && item.every((one) => typeof one === "string")) return item.map(() => mark);
		}
		return copy(item, depth + 1, seen);
	}

	/** Length of the longest end of `input` that is the beginning of a secret. */
	function openEnd(input: string): number {
		const from = Math.max(0, input.length - longest + 1);
		for (let at = from; at < input.length; at += 1) {
			const tail = input.slice(at);
			if (forms.some((form) => form.length > tail.length && form.startsWith(tail))) return tail.length;
		}
		return 0;
	}

	insert(initial);
	rebuild();
	return {
		add(values) {
			const before = known.size;
			insert(values);
			if (known.size !== before) rebuild();
		},
		replace(values) {
			known = new Set();
			insert(values);
			rebuild();
		},
		text,
		alike,
		data<T>(value: T): T {
			return copy(value, 0, new Set()) as T;
		},
		stream() {
			let held = "";
			return {
				push(piece) {
					const all = held + piece;
					if (!pattern) {
						held = "";
						return all;
					}
					const keep = openEnd(all);
					held = keep === 0 ? "" : all.slice(all.length - keep);
					return (keep === 0 ? all : all.slice(0, all.length - keep)).replace(pattern, mark);
				},
				end() {
					const rest = held;
					held = "";
					return text(rest);
				},
			};
		},
	};
}
