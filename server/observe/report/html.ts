/** A report as one HTML file: nothing from outside, no script, everything escaped. */
import type { PlanItem } from "../../agent/types.ts";
import type { CallSource } from "../../model/model.ts";
import type { UsageRow } from "../../store/ledger-store.ts";
import { errorWords, guardWords } from "../alert-words.ts";
import { diffLines, hunks } from "./diff.ts";
import { type ReportData, type ReportStep, type ReportTurn, sourceNames } from "./gather.ts";
import { style } from "./style.ts";
import { type Words, wordsOf } from "./words.ts";

const replacements: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text as HTML shows it and nothing else: no tag, no attribute, no hidden control or direction mark. */
export function escapeHtml(text: string): string {
	return text
		.toWellFormed()
		.replace(/[&<>"']/g, (character) => replacements[character] ?? "")
		.replace(/[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}

interface Frame {
	words: Words;
	chinese: boolean;
	time(at: number): string;
	number(value: number): string;
}

const h = escapeHtml;

function cost(frame: Frame, value: number | null, currency = "USD"): string {
	return value === null
		? `<span class="unknown">${h(frame.words.unknownPrice)}</span>`
		: `${value === 0 ? h(frame.words.free) : h(`${value.toPrecision(4).replace(/\.?0+$/, "")} ${currency}`)}`;
}

function seconds(ms: number | null): string {
	return ms === null ? "…" : ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function bars(frame: Frame, rows: ReportData["bars"]): string {
	const most = Math.max(1, ...rows.map((row) => row.input + row.output));
	if (rows.every((row) => row.input + row.output === 0)) return "";
	const width = 720;
	const height = 140;
	const step = width / Math.max(1, rows.length);
	const shapes = rows.map((row, index) => {
		const x = index * step + 1;
		const w = Math.max(1, Math.min(40, step - 2));
		const inputHeight = (row.input / most) * height;
		const outputHeight = (row.output / most) * height;
		const label =
			index % Math.ceil(rows.length / 24) === 0
				? `<text x="${(x + w / 2).toFixed(1)}" y="${height + 14}" text-anchor="middle">${h(row.label)}</text>`
				: "";
		return `<g><title>${h(`${row.label}: ${frame.number(row.input)} + ${frame.number(row.output)}`)}</title>
<rect class="in" x="${x.toFixed(1)}" y="${(height - inputHeight).toFixed(1)}" width="${w.toFixed(1)}" height="${inputHeight.toFixed(1)}"/>
<rect class="out" x="${x.toFixed(1)}" y="${(height - inputHeight - outputHeight).toFixed(1)}" width="${w.toFixed(1)}" height="${outputHeight.toFixed(1)}"/>${label}</g>`;
	});
	return `<figure><svg viewBox="0 0 ${width} ${height + 20}" role="img" aria-label="${h(frame.words.tokens)}">${shapes.join("")}</svg>
<figcaption><span class="key in"></span>${h(frame.words.input)} <span class="key out"></span>${h(frame.words.output)} · ${h(frame.words.most)} ${frame.number(most)}</figcaption></figure>`;
}

function usageTable(frame: Frame, title: string, rows: UsageRow[], name: (key: string) => string): string {
	if (rows.length === 0) return "";
	const { words, number } = frame;
	const most = Math.max(1, ...rows.map((row) => row.inputTokens + row.outputTokens));
	const lines = rows.map(
		(
			row,
		) => `<tr><th scope="row">${h(name(row.key))}</th><td>${number(row.calls)}</td><td>${number(row.inputTokens)}</td><td>${number(row.cachedTokens)}</td><td>${number(row.outputTokens)}</td>
<td>${cost(frame, row.cost, row.currency)}${row.unpricedTokens > 0 && row.cost !== null ? ` <small>+ ${number(row.unpricedTokens)} ${h(words.unpriced)}</small>` : ""}</td>
<td class="meter"><i style="width:${((100 * (row.inputTokens + row.outputTokens)) / most).toFixed(1)}%"></i></td></tr>`,
	);
	return `<h2>${h(title)}</h2><table><thead><tr><th></th><th>${h(words.calls)}</th><th>${h(words.input)}</th><th>${h(words.cached)}</th><th>${h(words.output)}</th><th>${h(words.cost)}</th><th></th></tr></thead><tbody>${lines.join("")}</tbody></table>`;
}

const planText = (items: PlanItem[]): string => items.map((item) => `- [${item.done ? "x" : " "}] ${item.text}`).join("\n");

/** Fact.md marks each line with the fact's id, for the program alone. */
const withoutMarks = (text: string): string => text.replace(/[ \t]*<!--f:[^>\n]*-->/g, "");

function diff(before: string, after: string): string {
	const lines = hunks(diffLines(before, after)).map((line) =>
		line === null
			? '<span class="gap">⋯</span>'
			: `<span class="${line.kind}">${line.kind === "added" ? "+" : line.kind === "removed" ? "−" : " "} ${h(line.text)}</span>`,
	);
	return `<pre class="diff">${lines.join("\n")}</pre>`;
}

function stepHtml(frame: Frame, step: ReportStep): string {
	const { words, number } = frame;
	const tools = step.tools.map((tool) => {
		let args = tool.arguments;
		try {
			args = JSON.stringify(JSON.parse(tool.arguments), null, 2);
		} catch {
			// Shown as it came.
		}
		return `<details class="tool ${h(tool.state)}"><summary><code>${h(tool.name)}</code> <small>${h(words.states[tool.state] ?? tool.state)} · ${seconds(tool.ms)}</small></summary>
<h5>${h(words.arguments)}</h5><pre>${h(args)}</pre><h5>${h(words.result)}</h5><pre>${h(tool.result ?? "")}</pre></details>`;
	});
	return `<section class="step"><h4>${h(words.step)} ${step.step}${step.round > 1 ? ` · ${h(words.round)} ${step.round}` : ""} <small>${h(step.model)} · ${number(step.inputTokens)} (${number(step.cachedTokens)} ${h(words.cached)}) + ${number(step.outputTokens)} · ${cost(frame, step.cost)}</small></h4>
${step.text.trim() === "" ? "" : `<div class="text">${h(step.text)}</div>`}${tools.join("")}${step.note ? `<p class="note">${h(step.note)}</p>` : ""}</section>`;
}

function turnHtml(frame: Frame, turn: ReportTurn, open: boolean): string {
	const { words, number } = frame;
	const head = turn.said[0]?.text.split("\n")[0]?.slice(0, 120) ?? words.origins[turn.origin] ?? turn.origin;
	const failed = turn.calls.filter((call) => call.state === "failed");
	const plans = turn.plans.map(
		(plan, index) =>
			`<h5>${h(words.plan)} ${index + 1}</h5>${diff(index === 0 ? "" : planText(turn.plans[index - 1] ?? []), planText(plan))}`,
	);
	const why = [
		...turn.blocks.map((block) => `<tr><th scope="row">${h(block.name)}</th><td>${number(block.chars)}</td></tr>`),
		...turn.recalled.map(
			(one) =>
				`<tr><th scope="row">${h(words.recalled)}: ${h(one.text.slice(0, 300))}</th><td>${h(String(one.score))} · ${h(one.source)}</td></tr>`,
		),
		...failed.map(
			(call) =>
				`<tr><th scope="row">${h(words.failedCall)}: ${h(call.model)} ${h(call.key ?? "")}</th><td>${h(errorWords(call.error ?? "")[frame.chinese ? "zh" : "en"])}</td></tr>`,
		),
	];
	return `<details class="turn"${open ? " open" : ""} id="turn-${h(turn.id)}"><summary><b>${h(head)}</b> <small>${h(frame.time(turn.startedAt))} · ${h(turn.conversation)} · ${h(words.states[turn.state] ?? turn.state)} · ${seconds(turn.ms)} · ${h(turn.model ?? "")}</small></summary>
${turn.said.map((message) => `<blockquote class="said"><small>${h(message.from ?? words.master)} · ${h(frame.time(message.at))}</small>${h(message.text)}</blockquote>`).join("")}
${turn.guard ? `<p class="warn">${h(words.cut)}: ${h(guardWords(turn.guard)[frame.chinese ? "zh" : "en"])}</p>` : ""}${turn.error ? `<p class="warn">${h(errorWords(turn.error)[frame.chinese ? "zh" : "en"])}</p>` : ""}
${turn.steps.map((step) => stepHtml(frame, step)).join("")}
${plans.join("")}
${turn.reply === null ? "" : `<blockquote class="reply"><small>${h(words.reply)}</small>${h(turn.reply)}</blockquote>`}
${why.length === 0 ? "" : `<details class="why"><summary>${h(words.why)}</summary><table><tbody>${why.join("")}</tbody></table></details>`}
<p><small>${h(words.turn)} <code>${h(turn.id)}</code></small></p></details>`;
}

/** `locale`: zh… gives Chinese, anything else English. */
export function renderReport(data: ReportData, locale: string): string {
	const chinese = locale.toLowerCase().startsWith("zh");
	const words = wordsOf(chinese);
	const format = new Intl.DateTimeFormat(chinese ? "zh-CN" : "en-GB", {
		dateStyle: "medium",
		timeStyle: "medium",
		hourCycle: "h23",
		timeZone: data.timezone,
	});
	const figures = new Intl.NumberFormat(chinese ? "zh-CN" : "en-GB");
	const frame: Frame = { words, chinese, time: (at) => format.format(at), number: (value) => figures.format(value) };
	const title = `OpenLani · ${data.kind === "day" ? words.day : words.turn} ${data.name}`;
	const total = data.bySource.reduce((sum, row) => sum + row.inputTokens + row.outputTokens, 0);
	const nameOfSource = (key: string): string => sourceNames[key as CallSource]?.[chinese ? "zh" : "en"] ?? key;
	return `<!doctype html>
<html lang="${chinese ? "zh-CN" : "en"}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer"><title>${h(title)}</title><style>${style}</style></head><body><main>
<h1>${h(title)}</h1><p class="lead">${h(words.made)} ${h(frame.time(data.createdAt))} (${h(data.timezone)}) · ${frame.number(data.turns.length)} ${h(words.turns)} · ${frame.number(total)} ${h(words.tokens)}</p>
${bars(frame, data.bars)}
${usageTable(frame, words.bySource, data.bySource, nameOfSource)}
${usageTable(frame, words.byModel, data.byModel, (key) => key)}
<h2>${h(words.tasks)}</h2>${data.turns.length === 0 ? `<p>${h(words.nothing)}</p>` : data.turns.map((turn) => turnHtml(frame, turn, data.turns.length === 1)).join("")}
${data.files.length === 0 ? "" : `<h2>${h(words.files)}</h2>${data.files.map((file) => `<h5><code>${h(file.file)}</code> <small>${h(frame.time(file.at))} · ${h(words.by[file.by] ?? file.by)} · ${h(file.reason)}</small></h5>${diff(withoutMarks(file.before), withoutMarks(file.after))}`).join("")}`}
</main></body></html>
`;
}
