/** A turn's outcome in OpenAI's words. */
import type { MessageRow, TurnRow } from "../store/store.ts";
import { HttpProblem } from "./problem.ts";

/** A repeated request would be a second message: clients must not repeat by themselves what has reached the conversation. */
export const NO_RETRY = { "x-should-retry": "false" };

export interface Answer {
	row: MessageRow | null;
	turn: TurnRow | null;
}

/** A problem in OpenAI's shape. */
export function openaiError(problem: HttpProblem): { error: { message: string; type: string; param: string | null; code: string } } {
	const { status } = problem;
	const type =
		status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : status === 403 ? "permission_error" : "invalid_request_error";
	const code = status === 401 ? "invalid_api_key" : problem.code.replaceAll("-", "_");
	return { error: { message: problem.message, type, param: problem.errors?.[0]?.path ?? null, code } };
}

export function usageOf({ turn }: Answer): Record<string, unknown> {
	const { inputTokens = 0, outputTokens = 0, cachedTokens = 0, reasoningTokens = 0 } = turn?.usage ?? {};
	return {
		prompt_tokens: inputTokens,
		completion_tokens: outputTokens,
		total_tokens: inputTokens + outputTokens,
		prompt_tokens_details: { cached_tokens: cachedTokens },
		completion_tokens_details: { reasoning_tokens: reasoningTokens },
	};
}

/** The text of a turn that succeeded; a failed or stopped one is an error, also when there is partial text. */
export function textOf({ row, turn }: Answer): string {
	if (turn?.state === "failed") throw new HttpProblem(502, "turn-failed", row?.text || "The answer failed.", { headers: NO_RETRY });
	if (turn?.state === "stopped") throw new HttpProblem(409, "turn-stopped", "The answer was stopped.", { headers: NO_RETRY });
	return row?.text ?? "";
}

export function finishReason({ turn }: Answer): "stop" | "length" {
	return turn?.guard === "length" ? "length" : "stop";
}

export function completionOf(
	turnId: string,
	answer: Answer,
	{ created, model }: { created: number; model: string },
): Record<string, unknown> {
	const message = { role: "assistant", content: textOf(answer), refusal: null };
	return {
		id: `chatcmpl-${answer.turn?.id ?? turnId}`,
		object: "chat.completion",
		created,
		model,
		choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer) }],
		usage: usageOf(answer),
	};
}
