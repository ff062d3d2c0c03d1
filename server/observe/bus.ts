/** The one bus: what happens is said here once; the page, the log, the metrics and the event table listen. */
import type { LiveBody, LiveFrame } from "../http/contract.ts";

export interface EventBus {
	/**
	 * Gives the event the next sequence number. Listeners are handed it at the end of this round of the event loop, all in order: who says
	 * something on the way to a model call need not wait for everybody who listens. Kept types are also written to the event table soon.
	 */
	publish(body: LiveBody): LiveFrame;
	/** Hands listeners now what was said in this round. */
	deliver(): void;
	/** The last number given out. */
	seq(): number;
	/** `listener` is called for every frame that is said from now on; the answer ends that. A throwing listener harms nobody. */
	subscribe(listener: (frame: LiveFrame) => void): () => void;
	/** Every retained frame after `since`, in order, those of running turns' deltas included. `reset` when `since` is older than what is retained, or not of this store. */
	replay(since: number): Promise<{ frames: LiveFrame[]; reset: boolean }>;
	/** Hands on and writes what waits. */
	flush(): Promise<void>;
	close(): Promise<void>;
}
