/** Requests for other programs rather than people (compression, critique, titles, JSON): a deterministic, extractive answer. */
import type { ModelRequest } from "../model.ts";

const MOST_CHARS = 240;
/** Decisions, promises, results and figures weigh more than small talk. */
const WEIGHTS: [RegExp, number][] = [
	[
		/\b(?:decided?|agreed?|conclusion|will|must|should|promised?|deadline|finally|chose|plan(?:ned)?)\b|决定|同意|结论|约定|答应|必须|计划|最后|选择/i,
		3,
	],
	[/\b(?:done|finished|result|found|created|sent|saved|failed)\b|完成|结果|找到|发送|保存|失败/i, 2],
	[/\d/, 2],
	[/\b[A-Z][a-z]+(?:\s[A-Z][a-z]+)?\b/, 1],
	[/\b(?:my|I am|I'm|name is|like|prefer|birthday)\b|我的|我是|喜欢|生日|叫/i, 2],
	[/^(?:hi|hello|thanks|ok|你好|谢谢|好的)/i, -3],
];

export function condense(request: ModelRequest): string {
	const texts = request.messages.map((message) =>
		message.role === "user" ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n") : message.text,
	);
	const asked = texts.join("\n");
	const source = texts.filter((_, place) => request.messages[place]?.role !== "system").join("\n");
	if (request.role === "critique" || (request.json && /"faults"/.test(asked))) return JSON.stringify({ faults: [] });
	const line = summary(source);
	if (request.json) return JSON.stringify(shape(asked, line));
	return /\btitle\b|标题/i.test(asked) ? title(source) : line;
}

/** An object with the keys that the request's own example names. */
function shape(asked: string, line: string): Record<string, unknown> {
	const out: Record<string, unknown> = {};
	for (const match of asked.matchAll(/"(\w+)"\s*:\s*(\[|"|true|false|\d)/g)) {
		const [, key, kind] = match;
		if (!key || key in out) continue;
		out[key] = kind === "[" ? [] : kind === '"' ? line : kind === "true" || kind === "false" ? false : 0;
	}
	return Object.keys(out).length > 0 ? out : { summary: line };
}

function sentences(text: string): string[] {
	return text
		.replace(/\[\d{4}-\d\d-\d\d [A-Z][a-z]{2} \d\d:\d\d · [^\]\n]{0,140}\]/g, "")
		.split(/(?<=[。！？!?])\s*|(?<=[.])\s+|\n+/)
		.map((part) => part.replace(/^\s*(?:[-*>#]+|\w+:)\s*/, "").trim())
		.filter((part) => part.length > 1);
}

function summary(text: string): string {
	const ranked = sentences(text)
		.map((sentence, place) => ({
			sentence,
			place,
			score: WEIGHTS.reduce((sum, [pattern, weight]) => sum + (pattern.test(sentence) ? weight : 0), 0),
		}))
		.sort((a, b) => b.score - a.score || a.place - b.place);
	const taken: typeof ranked = [];
	let length = 0;
	const worth = ranked.filter((item) => item.score >= 0);
	for (const item of worth.length > 0 ? worth : ranked) {
		if (taken.length > 0 && length + item.sentence.length > MOST_CHARS) continue;
		taken.push(item);
		length += item.sentence.length;
		if (taken.length >= 4) break;
	}
	const joined = taken
		.sort((a, b) => a.place - b.place)
		.map((item) => item.sentence.replace(/[。.;；]$/, ""))
		.join("; ");
	return Array.from(joined || "-")
		.slice(0, MOST_CHARS * 2)
		.join("");
}

function title(text: string): string {
	const first = sentences(text)[0] ?? text.trim();
	return /\p{Script=Han}/u.test(first) ? Array.from(first).slice(0, 14).join("") : first.split(/\s+/).slice(0, 7).join(" ");
}
