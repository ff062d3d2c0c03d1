import type { FilterStream } from "../safety/filter.ts";

/** A turn's text on its way to the page while it is streamed. Everything passes the filter's stream before it leaves; the model has joined small pieces. */
export type Deltas = ReturnType<typeof createDeltas>;

export function createDeltas(options: { filter(): FilterStream; send(text: string): void }) {
	let stream = options.filter();

	function say(text: string): void {
		if (text !== "") options.send(text);
	}

	return {
		push: (text: string): void => say(stream.push(text)),
		/** What was sent is void: begin again. */
		restart(): void {
			stream = options.filter();
		},
		/** Sends the rest. */
		end(): void {
			say(stream.end());
			stream = options.filter();
		},
	};
}
