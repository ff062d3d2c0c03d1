/** Text as whoever reads it gets it: not word by word. */
import type { Beat } from "./beat.ts";

/** What an attempt tells while it streams in. */
export type WireEvent =
	| { type: "text"; text: string }
	| { type: "reasoning"; text: string }
	/** All text so far was thinking. */
	| { type: "void" };

export interface Joining {
	emit(event: WireEvent): void;
	/** Hands on what is left, and waits for no beat any more. */
	end(): void;
}

/**
 * Text is handed on at once when none was since the last beat; what comes sooner is joined until the next one, because each event costs
 * its reader more than its words. The order stays, and nothing but text waits.
 */
export function joining(beat: Beat, tell: (event: WireEvent) => void): Joining {
	let joined: Exclude<WireEvent, { type: "void" }> | null = null;
	/** Not null: text waits for the next beat; ends the waiting. */
	let pause: (() => void) | null = null;

	function release(): void {
		const event = joined;
		joined = null;
		if (event) tell(event);
	}

	function go(): void {
		pause?.();
		pause = null;
	}

	function onBeat(): void {
		if (joined) release();
		else go();
	}

	return {
		emit(event) {
			if (event.type === "void") {
				release();
				tell(event);
				return;
			}
			if (joined?.type === event.type) joined = { type: event.type, text: joined.text + event.text };
			else {
				if (joined) go();
				release();
				joined = event;
			}
			if (pause) return;
			release();
			pause = beat.listen(onBeat);
		},
		end() {
			go();
			release();
		},
	};
}
