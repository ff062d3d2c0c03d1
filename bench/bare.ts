/** S: what one streaming call costs with the openai SDK alone. Everything else is set beside it. */
import OpenAI from "openai";
import type { ModelProcess } from "./lib/processes.ts";
import { now } from "./lib/processes.ts";

export function createBareClient(model: ModelProcess): OpenAI {
	return new OpenAI({ baseURL: model.url, apiKey: "sk-bench", maxRetries: 0 });
}

/** One call; answers how long until the first text and until the end, ms. */
export async function bareCall(client: OpenAI, text: string): Promise<{ firstMs: number; totalMs: number }> {
	const startedAt = now();
	let firstMs = Number.NaN;
	const stream = await client.chat.completions.create({
		model: "bench-model",
		messages: [{ role: "user", content: text }],
		stream: true,
		stream_options: { include_usage: true },
	});
	for await (const chunk of stream) if (chunk.choices[0]?.delta.content && Number.isNaN(firstMs)) firstMs = now() - startedAt;
	return { firstMs, totalMs: now() - startedAt };
}

/** Samples of S, after a warm-up. */
export async function measureBareCalls(model: ModelProcess, count: number): Promise<number[]> {
	const client = createBareClient(model);
	const samples: number[] = [];
	for (let n = -50; n < count; n++) {
		const { totalMs } = await bareCall(client, `hello ${n}`);
		if (n >= 0) samples.push(totalMs);
	}
	return samples;
}
