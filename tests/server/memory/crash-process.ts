/** A process that talks and is killed: started by crash.test.ts with a home and a number to go on from. */
import { exchange, openMemory, privately } from "./setup.ts";

const [dir, from, to] = process.argv.slice(2) as [string, string, string];
const test = await openMemory({ dir, quietMs: 0, flushMs: 1, timezone: () => "UTC" });
for (let number = Number(from); number <= Number(to); number++) {
	await test.memory.remember(privately(), exchange(number, `mark${number}x`));
	process.stdout.write(`${number}\n`);
	await new Promise((resolve) => setTimeout(resolve, 1));
}
await test.memory.settled();
process.stdout.write("done\n");
// Stays until it is killed.
setInterval(() => undefined, 1000);
