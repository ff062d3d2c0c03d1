/** A measured figure and what it should be. */
export interface Figure {
	name: string;
	unit: "ms" | "x" | "/s" | "MB" | "tokens" | "chars" | "%" | "";
	/** One value a run or sample. */
	samples: number[];
	/** What is printed: smallest, median and largest, or the two percentiles. */
	show: "range" | "percentiles";
	aim?: { text: string; holds: boolean };
	/** A word on how it was measured. */
	note?: string;
}

export function percentile(samples: number[], share: number): number {
	const sorted = [...samples].sort((a, b) => a - b);
	return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

export const median = (samples: number[]) => percentile(samples, 0.5);

type Aim = { atMost: number } | { atLeast: number };

/** A figure whose aim is set against its median, or against another statistic of the samples. */
export function figure(
	name: string,
	unit: Figure["unit"],
	measured: number[],
	options: { show?: Figure["show"]; aim?: Aim & { of?: "median" | "p95" | "max"; text?: string }; note?: string } = {},
): Figure {
	const { aim, show = "range", note } = options;
	// A time that was not seen (the other process had not noted it yet) is no sample.
	const samples = measured.filter(Number.isFinite);
	const made: Figure = { name, unit, samples, show, note };
	if (aim) {
		const value = aim.of === "p95" ? percentile(samples, 0.95) : aim.of === "max" ? Math.max(...samples) : median(samples);
		const holds = "atMost" in aim ? value <= aim.atMost : value >= aim.atLeast;
		const text = `${"atMost" in aim ? `≤ ${format(aim.atMost)}` : `≥ ${format(aim.atLeast)}`}${aim.of ? ` (${aim.of})` : ""}`;
		made.aim = { text: aim.text ?? text, holds };
	}
	return made;
}

export function format(value: number): string {
	if (!Number.isFinite(value)) return "–";
	if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
	return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

export function print(title: string, figures: Figure[]): void {
	const rows = figures.map((one) => {
		const { samples } = one;
		const values =
			samples.length === 1
				? format(samples[0] ?? Number.NaN)
				: one.show === "range"
					? `${format(Math.min(...samples))} / ${format(median(samples))} / ${format(Math.max(...samples))}`
					: `p50 ${format(median(samples))}  p95 ${format(percentile(samples, 0.95))}`;
		const aim = one.aim ? `${one.aim.text} ${one.aim.holds ? "ok" : "MISSED"}` : "";
		return [one.name, `${values} ${one.unit}`, aim, one.note ?? ""];
	});
	const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
	console.log(`\n${title}`);
	for (const row of rows) console.log(`  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd());
}
