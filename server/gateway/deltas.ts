import type { FilterStream } from "../safety/filter.ts";

/**
 * Joins a model's small pieces into frames: the first goes at once, later ones together every `everyMs`. Everything passes
 * the filter's stream before it leaves.
 */
export type Deltas = ReturnType<typeof createDeltas>;

export function createDeltas(options: { filter(): FilterStream; send(text: string): void; everyMs?: number }) {
	const everyMs = options.everyMs ?? 33;
	let stream = options.filter();
	let waiting = "";
	let timer: NodeJS.Timeout | null = null;

	function send(): void {
		timer = null;
		if (waiting === "") return;
		const text = waiting;
		waiting = "";
		options.send(text);
	}

	return {
		push(text: string): void {
			const passed = stream.push(text);
			if (passed === "") return;
			waiting += passed;
			if (timer) return;
			send();
			timer = setTimeout(send, everyMs);
		},
		/** What was sent is void: begin again. */
		restart(): void {
			if (timer) clearTimeout(timer);
			timer = null;
			waiting = "";
			stream = options.filter();
		},
		/** Sends the rest. */
		end(): void {
			waiting += stream.end();
			if (timer) clearTimeout(timer);
			send();
			stream = options.filter();
		},
	};
}
