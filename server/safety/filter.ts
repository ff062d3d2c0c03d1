/** The content filter's contract: every text that leaves passes it. */

export type FilterAction = "allow" | "mask" | "replace" | "block" | "hold";

export interface Verdict {
	verdict: FilterAction;
	/** The text that may leave: unchanged, masked or replaced; empty when blocked or held. */
	text: string;
	matches: { rule: string; start: number; end: number }[];
}

/** Passes text on as it streams, holding back as much as a match could still need. */
export interface FilterStream {
	/** Answers what may leave now. */
	push(text: string): string;
	/** Answers the rest. */
	end(): string;
}

export interface Filter {
	check(text: string, profile: string): Verdict;
	stream(profile: string): FilterStream;
}

/** The filter of an installation without rules: lets everything pass. */
export function createPassFilter(): Filter {
	return {
		check: (text) => ({ verdict: "allow", text, matches: [] }),
		stream: () => ({ push: (text) => text, end: () => "" }),
	};
}
