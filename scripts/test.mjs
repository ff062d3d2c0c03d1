// npm test: set up, then every test. Arguments go to vitest (`npm test -- tests/server/store`).
import { join } from "node:path";
import { become } from "./lib/run.mjs";
import { main, ROOT, setup } from "./setup.mjs";

await main(async () => {
	await setup({ targets: ["server", "page"] });
	await become(process.execPath, [join(ROOT, "node_modules", "vitest", "vitest.mjs"), "run", ...process.argv.slice(2)], { cwd: ROOT });
});
