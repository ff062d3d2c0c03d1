/**
 * npm run bench [-- GROUP... --quick --json FILE]: measures the built daemon as a child process against the scripted model server and
 * prints every figure beside its aim. A missed aim does not fail the run: machines differ, and a busy one is slow.
 */
import { writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { measureBareCalls } from "./bare.ts";
import { chat } from "./chat.ts";
import { growth } from "./growth.ts";
import { type Figure, figure, format, median, print } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { startModel } from "./lib/processes.ts";
import { scriptGroup } from "./lib/script-group.ts";
import { memory } from "./memory.ts";
import { prompt } from "./prompt.ts";
import { start } from "./start.ts";
import { streams } from "./streams.ts";
import { throughput } from "./throughput.ts";

const ledger = scriptGroup({
	name: "ledger",
	title: "The ledger of model calls",
	file: "ledger.ts",
	aims: { "ledger: store one call": 1, "ledger: usage of a month": 100 },
});

const GROUPS: BenchGroup[] = [start, prompt, chat, throughput, streams, growth, memory, ledger];

const { values, positionals } = parseArgs({
	allowPositionals: true,
	options: { quick: { type: "boolean", default: false }, json: { type: "string" } },
});
const unknown = positionals.filter((name) => !GROUPS.some((group) => group.name === name));
if (unknown.length > 0) {
	console.error(`unknown: ${unknown.join(", ")}; there are ${GROUPS.map((group) => group.name).join(", ")}`);
	process.exit(1);
}
const chosen = positionals.length > 0 ? GROUPS.filter((group) => positionals.includes(group.name)) : GROUPS;

console.log(`Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? "?"}, load ${loadavg()[0]?.toFixed(1)}`);
console.log("min / median / max, or percentiles, over the samples; the aim beside it.");

const model = await startModel();
const results: Record<string, Figure[]> = {};
let failed = false;
try {
	const samples = await measureBareCalls(model, values.quick ? 100 : 400);
	results.bare = [
		figure("S: one streaming call, openai SDK alone", "ms", samples),
		figure("  percentiles", "ms", samples, { show: "percentiles" }),
	];
	print("The measure", results.bare);
	for (const group of chosen) {
		try {
			results[group.name] = await group.run({ model, quick: values.quick });
			print(group.title, results[group.name] ?? []);
		} catch (error) {
			failed = true;
			console.log(`\n${group.title}\n  failed: ${error instanceof Error ? error.message : String(error)}`);
		}
	}
	const missed = Object.values(results)
		.flat()
		.filter((one) => one.aim && !one.aim.holds);
	if (missed.length > 0)
		console.log(`\nAims missed: ${missed.map((one) => `${one.name.trim()} (${format(median(one.samples))})`).join(", ")}.`);
	else if (!failed) console.log("\nEvery aim was reached.");
	if (values.json) await writeFile(values.json, `${JSON.stringify(results, null, "\t")}\n`);
} finally {
	await model.close();
}
process.exitCode = failed ? 1 : 0;
