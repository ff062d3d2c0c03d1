/** A strict reader of requests: what the pickiest server would refuse. */
import type { ModelMessage } from "../../../server/model/model.ts";

/** Problems of a request, empty when any server would take it. */
export function strictProblems(messages: ModelMessage[], turnStartImages: "none" | "any" = "any"): string[] {
	const problems: string[] = [];
	const ids = new Set<string>();
	// JSON escapes lone surrogates, and only those.
	if (/(^|[^\\])(\\\\)*\\ud[89a-f]/i.test(JSON.stringify(messages))) problems.push("lone surrogate");
	messages.forEach((message, index) => {
		const before = messages[index - 1];
		if (message.role === "system" && index !== 0) problems.push(`system at ${index}`);
		if (message.role === "system" && message.text.trim() === "") problems.push("blank system");
		if (message.role === "assistant") {
			if (!before || before.role === "system") problems.push("assistant first");
			if (before?.role === "assistant") problems.push("assistant after assistant");
			if (message.calls.length === 0 && message.text.trim() === "") problems.push("empty assistant");
			message.calls.forEach((call, offset) => {
				const result = messages[index + 1 + offset];
				if (result?.role !== "tool" || result.callId !== call.id || result.name !== call.name)
					problems.push(`call ${call.id} without its result`);
				if (ids.has(call.id)) problems.push(`id ${call.id} twice`);
				ids.add(call.id);
				if (!/^[\w.:-]{1,40}$/.test(call.id)) problems.push(`bad id ${call.id}`);
				if (!/^[A-Za-z0-9_-]{1,64}$/.test(call.name)) problems.push(`bad name ${call.name}`);
				try {
					const value = JSON.parse(call.arguments);
					if (value === null || typeof value !== "object" || Array.isArray(value)) problems.push("arguments are no object");
				} catch {
					problems.push("arguments are no JSON");
				}
			});
		}
		if (message.role === "tool") {
			let at = index - 1;
			while (messages[at]?.role === "tool") at--;
			const owner = messages[at];
			if (owner?.role !== "assistant" || owner.calls[index - at - 1]?.id !== message.callId)
				problems.push(`orphan result ${message.callId}`);
			if (message.text === "") problems.push("empty result");
		}
		if (message.role === "user") {
			if (message.content.length === 0) problems.push("user without content");
			if (!message.content.some((part) => part.type === "image" || part.text.trim() !== "")) problems.push("blank user");
			if (message.content.some((part) => part.type === "text" && part.text.trim() === "")) problems.push("blank part");
			if (turnStartImages === "none" && message.content.some((part) => part.type === "image")) problems.push("old image");
		}
	});
	const last = messages.at(-1);
	if (last?.role !== "user" && last?.role !== "tool") problems.push("ends with no user message or result");
	return problems;
}
