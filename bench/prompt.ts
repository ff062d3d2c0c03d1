/** What is sent for "hi", and how much of it the next request repeats (providers charge repeated beginnings less). */
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { connect, makeConversations } from "./lib/client.ts";
import { figure } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { makeHome, startDaemon } from "./lib/processes.ts";

interface Body {
	messages: { role: string; content: unknown }[];
	tools?: unknown[];
}

/** As a model reads it: plain texts as they are, everything else as JSON. */
const textOf = (messages: Body["messages"]) =>
	messages.map((one) => (typeof one.content === "string" ? one.content : JSON.stringify(one))).join("\n");

const tokens = (text: string) => encode(text, { disallowedSpecial: new Set() }).length;

function commonBytes(a: string, b: string): number {
	const [one, two] = [Buffer.from(a), Buffer.from(b)];
	let at = 0;
	while (at < one.length && one[at] === two[at]) at++;
	return at;
}

export const prompt: BenchGroup = {
	name: "prompt",
	title: 'The request for "hi"',
	async run({ model }) {
		const home = await makeHome();
		const daemon = await startDaemon(home.path, model.url);
		const client = await connect(daemon.url, "/api/v1/live", daemon.token);
		try {
			const [conversation = ""] = await makeConversations(daemon, 1);
			await model.note("bodies");
			await client.ask(conversation, "hi");
			const forHi = await model.bodies();
			await client.ask(conversation, "and how are you?");
			const [first = "", second = ""] = await model.bodies();
			await model.note("nothing");
			const body = JSON.parse(first) as Body;
			const parts = {
				system: textOf(body.messages.filter((one) => one.role === "system")),
				tools: JSON.stringify(body.tools ?? []),
				messages: textOf(body.messages.filter((one) => one.role !== "system")),
			};
			const counts = Object.entries(parts).map(([name, text]) => ({ name, tokens: tokens(text), chars: text.length }));
			const sum = (of: "tokens" | "chars") => counts.reduce((all, one) => all + one[of], 0);
			return [
				figure("tokens (o200k)", "tokens", [sum("tokens")], { aim: { atMost: 2_500 } }),
				...counts.map((one) => figure(`  ${one.name}`, "tokens", [one.tokens])),
				figure("characters", "chars", [sum("chars")], { aim: { atMost: 9_000 } }),
				...counts.map((one) => figure(`  ${one.name}`, "chars", [one.chars])),
				figure("tools offered", "", [body.tools?.length ?? 0], { aim: { atLeast: 10 } }),
				figure("model calls", "", [forHi.length], { aim: { atMost: 1 } }),
				figure("the next request begins with, of its bytes", "%", [(100 * commonBytes(first, second)) / Buffer.byteLength(first)], {
					aim: { atLeast: 99 },
				}),
			];
		} finally {
			client.close();
			await daemon.stop();
			await home.remove();
		}
	},
};
