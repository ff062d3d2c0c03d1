import { spawn } from "node:child_process";
import { join } from "node:path";
import { type Figure, figure } from "./figures.ts";
import type { BenchGroup } from "./group.ts";

interface Options {
	name: string;
	title: string;
	/** A file of bench/ that measures by itself and prints one JSON line a figure: `{"bench": NAME, "median": N, …}`, in ms. */
	file: string;
	/** Largest median for figures whose name begins so. */
	aims: Record<string, number>;
}

/** A group whose measuring is a program of its own: it needs no daemon, and its memory is its own. */
export function scriptGroup({ name, title, file, aims }: Options): BenchGroup {
	return {
		name,
		title,
		async run() {
			const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "..", file)], {
				stdio: ["ignore", "pipe", "inherit"],
			});
			let output = "";
			child.stdout.on("data", (chunk) => {
				output += chunk;
			});
			const code = await new Promise<number | null>((resolve, reject) => {
				child.once("error", reject);
				child.once("close", resolve);
			});
			if (code !== 0) throw new Error(`${file} ended with code ${code}`);
			return output
				.split("\n")
				.filter((line) => line.startsWith("{"))
				.map((line): Figure => {
					const { bench, median, ...others } = JSON.parse(line) as { bench: string; median: number } & Record<string, number>;
					const aim = Object.entries(aims).find(([start]) => bench.startsWith(start))?.[1];
					const note = Object.entries(others)
						.map(([key, value]) => `${key} ${value}`)
						.join(", ");
					return figure(bench, "ms", [median], { note, ...(aim === undefined ? {} : { aim: { atMost: aim } }) });
				});
		},
	};
}
