import type { Figure } from "./figures.ts";
import type { ModelProcess } from "./processes.ts";

export interface BenchContext {
	model: ModelProcess;
	/** Median of S in ms: one bare openai-SDK streaming call of the same reply to the same server. */
	bareCallMs: number;
	/** Fewer samples, for a quick look. */
	quick: boolean;
}

/** A file of bench/ measures one group of figures. */
export interface BenchGroup {
	name: string;
	title: string;
	run(context: BenchContext): Promise<Figure[]>;
}
