/** What was learned of each model's tokens, kept over restarts: the counter's rates go into the ledger and come back at the next start. */
import type { TokenCounter } from "../model/tokens.ts";
import type { Ledger } from "../store/ledger-store.ts";

/** Rows of the counter beside those of the meter, which are named by configured model. */
const prefix = "counter:";
/** Long enough that rounding does not show beside `worthKeeping`. */
const probe = "calibration ".repeat(400);
/** A rate that has moved by less than this part is not written again. */
const worthKeeping = 0.01;
const nobody = "\u0000unknown";

export interface Calibration extends TokenCounter {
	/** Teaches the counter what earlier processes had learned. */
	load(): Promise<void>;
}

/** Wraps a counter. What it learns is written in the background, at most once in ten lessons a model. */
export function createCalibration(options: {
	counter: TokenCounter;
	ledger: Pick<Ledger, "ratios" | "keepRatio">;
	onError(error: unknown): void;
}): Calibration {
	const { counter, ledger } = options;
	const lessons = new Map<string, number>();
	const kept = new Map<string, number>();
	let plain = 0;
	function rateOf(model: string): number {
		plain ||= counter.countParts(nobody, [probe]);
		return counter.countParts(model, [probe]) / plain;
	}

	return {
		count: (model, text) => counter.count(model, text),
		countParts: (model, parts) => counter.countParts(model, parts),
		learn(model, estimated, actual) {
			counter.learn(model, estimated, actual);
			const number = (lessons.get(model) ?? 0) + 1;
			lessons.set(model, number);
			if (number > 3 && number % 10 !== 0) return;
			const ratio = rateOf(model);
			if (Math.abs(ratio / (kept.get(model) ?? Number.POSITIVE_INFINITY) - 1) < worthKeeping) return;
			kept.set(model, ratio);
			ledger.keepRatio({ model: prefix + model, ratio, high: ratio, samples: number }).catch(options.onError);
		},
		async load() {
			for (const { model, ratio } of await ledger.ratios())
				if (model.startsWith(prefix) && ratio > 0) counter.learn(model.slice(prefix.length), 10_000, 10_000 * ratio);
		},
	};
}
