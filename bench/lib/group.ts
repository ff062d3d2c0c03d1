import type { Figure } from "./figures.ts";
import type { ModelProcess } from "./processes.ts";

export interface BenchContext {
	model: ModelProcess;
	/** Fewer samples, for a quick look. */
	quick: boolean;
}

/** A file of bench/ measures one group of figures. */
export interface BenchGroup {
	name: string;
	title: string;
	run(context: BenchContext): Promise<Figure[]>;
}
