/** Takes secrets out of everything that is written, shown or sent: logs, frames, errors, prompts, tool output, reports. */

export interface Redactor {
	/** Makes values secret from now on, in every form in which they may be written down. Values under six characters are ignored: they would tear holes into plain words. */
	add(values: Iterable<string>): void;
	/** Replaces the whole set of known values (after the configuration was read again). */
	replace(values: Iterable<string>): void;
	/** The text without any known secret, and without what looks like one. Never throws. */
	text(text: string): string;
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

/** What is a secret by its shape, even if nobody told us: provider keys, bearer headers, bot tokens in paths, credentials in URLs, private keys. */
const shapes: [RegExp, string][] = [
	[/\b(?:sk|pk|rk|xai|gsk|tvly|hf|glpat|ghp|gho|ghs|xoxb|xoxp|xapp)[-_][A-Za-z0-9_-]{16,}\b/g, mark],
	[/\bAIza[A-Za-z0-9_-]{30,}\b/g, mark],
	[/\b(Bearer|Basic|QQBot)\s+[A-Za-z0-9._~+/=-]{12,}/g, `$1 ${mark}`],
	[/\bbot\d{5,}:[A-Za-z0-9_-]{20,}/g, `bot${mark}`],
	[/\b\d{8,10}:[A-Za-z0-9_-]{32,}/g, mark],
	[/:\/\/[^\s/@:"'\\<>]{1,256}:[^\s/@"'\\<>]{1,256}@/g, `://${mark}@`],
	[/([?&](?:access_token|token|key|api_key|apikey|secret|password|sig|signature)=)[^&\s#"'\\<>]+/gi, `$1${mark}`],
	// Ends at the first character that no key holds, so that JSON around it stays JSON.
	[/-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]{0,20}PRIVATE KEY-----)?/g, mark],
];
/** One cheap look decides whether the shapes need to be tried at all. */
const mayHaveShape = /[-_:=@]|AIza|Bearer|Basic|QQBot/;

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
	let longest = 0;

	function rebuild(): void {
		forms = [...new Set([...known].flatMap(formsOf))].sort((a, b) => b.length - a.length);
		longest = forms[0]?.length ?? 0;
		pattern = forms.length > 0 ? new RegExp(forms.map(quoted).join("|"), "g") : null;
	}

	function insert(values: Iterable<string>): void {
		for (const value of values) if (typeof value === "string" && value.trim().length >= shortestSecret) known.add(value.trim());
	}

	function text(input: string): string {
		let out = pattern ? input.replace(pattern, mark) : input;
		if (out.length >= 12 && mayHaveShape.test(out)) for (const [shape, replacement] of shapes) out = out.replace(shape, replacement);
		return out;
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
			for (const [key, item] of Object.entries(value)) record[text(key)] = field(key, item, depth, seen);
			out = record;
		}
		seen.delete(value);
		return out;
	}

	function field(key: string, item: unknown, depth: number, seen: Set<object>): unknown {
		if (secretName.test(key) || secretCamel.test(key)) {
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
