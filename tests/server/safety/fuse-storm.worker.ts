/** Fifty conversations that call a "server" at once, over one ledger; killed by its parent. Each answer is noted in a file as the server's own count. */
import { appendFileSync } from "node:fs";
import { createPriceBook } from "../../../server/model/prices.ts";
import { createMeter } from "../../../server/observe/meter.ts";
import { createFuse } from "../../../server/safety/fuse.ts";
import { createRedactor } from "../../../server/safety/redact.ts";
import { openLedger } from "../store/open-ledger.ts";

const [file = "", counted = "", seed = "1"] = process.argv.slice(2);
const clock = { now: () => Date.parse("2026-11-30T04:00:00Z") };
const home = await openLedger({ file });
await home.ledger.recover(clock.now());
const fuse = createFuse({
	ledger: home.ledger,
	budget: () => ({
		dailyTokens: 100_000,
		dailyCost: null,
		warnAt: [0.5, 0.8],
		reserveForPeople: 0.2,
		dailyShare: { stranger: null, known: null, group: null },
	}),
	calendar: home.calendar,
	timezone: () => "Asia/Shanghai",
	clock,
});
let ids = 0;
const meter = createMeter({
	ledger: home.ledger,
	fuse,
	prices: createPriceBook(),
	modelOf: () => null,
	redact: createRedactor(),
	clock,
	newId: () => `${seed}-${++ids}`,
});
await meter.ready();
let state = Number(seed) * 7919;
const random = (): number => {
	state = (state * 1103515245 + 12345) % 2147483648;
	return state / 2147483648;
};

async function converse(number: number): Promise<void> {
	for (;;) {
		// 900 to 3,000 tokens a call; our estimate of the input is up to a tenth too small.
		const input = 800 + Math.floor(random() * 1_700);
		const output = 100 + Math.floor(random() * 400);
		let id: string;
		try {
			id = await meter.open({
				context: { source: number % 2 ? "job" : "chat", conversationId: `c${number}`, turnId: `t${number}`, personId: "master" },
				model: "main",
				modelName: "m",
				key: null,
				attempt: 1,
				request: { number },
				estimatedInputTokens: Math.floor(input * (0.9 + random() * 0.1)),
				maxOutputTokens: 500,
				startedAt: clock.now(),
			});
		} catch {
			if (number % 2 === 0) appendFileSync(`${counted}.refused`, `${number}\n`);
			return;
		}
		await new Promise((resolve) => setTimeout(resolve, 1 + random() * 10));
		appendFileSync(counted, `${input + output}\n`);
		await meter.close(id, {
			response: { text: "" },
			error: null,
			usage: {
				inputTokens: input,
				cachedTokens: 0,
				outputTokens: output,
				reasoningTokens: 0,
				estimated: false,
				cost: null,
				currency: "USD",
			},
			ms: 1,
			firstByteMs: 1,
		});
	}
}

process.stdout.write("ready\n");
await Promise.all(Array.from({ length: 50 }, (_, number) => converse(number)));
process.stdout.write(`${JSON.stringify(await fuse.state())}\n`);
await home.close();
