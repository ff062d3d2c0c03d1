/** remember_fact, recall, forget. */
import { keyOfOwner } from "../../memory/scope.ts";
import { dayOf } from "../../memory/text/dates.ts";
import { termsOf } from "../../memory/text/terms.ts";
import { instantOf } from "../../memory/times.ts";
import type { Tool, ToolResult } from "../tool.ts";
import { type MemoryToolOptions, ownerOf } from "./index.ts";

const longestFact = 500;
const found = 8;

const failed = (text: string): ToolResult => ({ text, isError: true });

/** As `recall` shows it, with or without its brackets. */
const idOf = (args: Record<string, unknown>): string =>
	String(args.id ?? "")
		.replace(/^\[|\]$/g, "")
		.trim();

/** Share of a text's words that occur in what people said: text that came from elsewhere shares few. */
export function sharedWith(text: string, said: string[]): number {
	const words = new Set(termsOf(text, null).flatMap((term) => (term.stop || term.kind === "char" ? [] : [term.token])));
	if (words.size === 0) return 1;
	const heard = new Set(said.flatMap((one) => termsOf(one, null).map((term) => term.token)));
	return [...words].filter((word) => heard.has(word)).length / words.size;
}

export function createRecallTools(options: MemoryToolOptions): { rememberFact: Tool; recall: Tool; forget: Tool } {
	const { memory } = options;

	return {
		rememberFact: {
			name: "remember_fact",
			description: "Keep one lasting fact that a person told you, as a full sentence with names and dates.",
			parameters: {
				type: "object",
				properties: { text: { type: "string" }, until: { type: "string", description: "YYYY-MM-DD, if it stops being true" } },
				required: ["text"],
			},
			capability: "memory",
			readOnly: false,
			effect: "row",
			async run(args, context) {
				const text = String(args.text ?? "")
					.replace(/\s+/g, " ")
					.trim();
				if (text === "") return failed("`text` is empty.");
				if ([...text].length > longestFact) return failed(`A fact has at most ${longestFact} characters: say the one thing that matters.`);
				// Alarms, heartbeats and machines tell nothing; people do.
				if (context.origin !== "human") return failed("Facts come from what a person says; nobody has said this now.");
				const turn = await options.turn?.(context.turnId);
				if (turn?.tainted && sharedWith(text, turn.said) < 0.5)
					return failed("This was read, not said by a person: it is no fact of theirs. Ask before keeping it.");
				let expiresAt: number | null = null;
				if (args.until !== undefined && args.until !== null && args.until !== "") {
					const day = instantOf(String(args.until), context.timezone);
					if (day === null || !/^\d{4}-\d{2}-\d{2}$/.test(String(args.until)))
						return failed(`\`until\` is a date like ${dayOf(context.now(), context.timezone)}.`);
					expiresAt = (instantOf(dayOf(day + 30 * 3_600_000, context.timezone), context.timezone) ?? day + 86_400_000) - 1;
					if (expiresAt <= context.now()) return failed("`until` is over already.");
				}
				const key = keyOfOwner(ownerOf(context));
				return {
					text: "Kept.",
					effects: [
						{
							type: "fact",
							action: "remember",
							row: { ...key, text, expiresAt, messageId: context.turnId, conversationId: context.conversationId },
						},
					],
				};
			},
		},

		recall: {
			name: "recall",
			description: "Search what you know of this person: facts, earlier talks, diary.",
			parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
			capability: "memory",
			readOnly: true,
			effect: "none",
			async run(args, context) {
				const query = String(args.query ?? "").trim();
				if (query === "") return failed("`query` is empty.");
				// "me", "what do you know about me": such words name nothing to look for, and ask for what is known at all.
				if (termsOf(query, null).every((term) => term.stop)) {
					const facts = (await memory.facts(keyOfOwner(ownerOf(context)))).sort((a, b) => b.at - a.at).slice(0, found);
					if (facts.length > 0)
						return { text: facts.map((one) => `${dayOf(one.at, context.timezone)} (fact) ${one.text} [${one.id}]`).join("\n") };
				}
				const { semantic, keyword } = await memory.search(keyOfOwner(ownerOf(context)), query, found / 2);
				const seen = new Set<string>();
				const rows = [...keyword, ...semantic].filter((one) => !seen.has(one.id) && seen.add(one.id)).slice(0, found);
				if (rows.length === 0) return { text: "Nothing found." };
				return {
					text: rows
						.map((one) => `${dayOf(one.at, context.timezone)} (${one.source}) ${[...one.text].slice(0, 400).join("")} [${one.id}]`)
						.join("\n"),
				};
			},
		},

		forget: {
			name: "forget",
			description: "Remove a memory for good, with all that was made of it. `id` as shown by recall, or a message's id.",
			parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
			capability: "memory",
			readOnly: false,
			effect: "outside",
			approval: "ask",
			about: async (args, owner) => (await options.textOf?.(keyOfOwner(ownerOf(owner)), idOf(args))) ?? null,
			async run(args, context) {
				const id = idOf(args);
				if (id === "") return failed("`id` is empty.");
				// Only the memory of the place where it is asked for.
				const within = keyOfOwner(ownerOf(context));
				const report =
					(await memory.forget({ entryId: id }, within)) ??
					(await memory.forget({ factId: id }, within)) ??
					(await memory.forget({ messageId: id }, within));
				if (!report) return failed(`There is no memory ${id} here. Use recall to find its id.`);
				return {
					text: `Removed: ${report.messages} messages, ${report.facts} facts, ${report.memories} memories, ${report.summaryLines + report.diaryLines} lines.`,
				};
			},
		},
	};
}
