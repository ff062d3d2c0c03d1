// npm run bench: set up, then measure. Arguments choose groups (`npm run bench -- start chat`).
import { join } from "node:path";
import { become } from "./lib/run.mjs";
import { main, ROOT, setup } from "./setup.mjs";

await main(async () => {
	await setup({ targets: ["server", "page"] });
	await become(process.execPath, ["--import", "tsx", join(ROOT, "bench", "main.ts"), ...process.argv.slice(2)], { cwd: ROOT });
});
