// npm test: set up, then every test. Arguments go to vitest (`npm test -- tests/server/store`).
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { become } from "./lib/run.mjs";
import { say } from "./lib/say.mjs";
import { main, ROOT, setup } from "./setup.mjs";

function isThere(...names) {
	const folders = (process.env.PATH ?? "").split(delimiter);
	return names.some((name) =>
		folders.some((folder) => {
			try {
				accessSync(join(folder, name), constants.X_OK);
				return true;
			} catch {
				return false;
			}
		}),
	);
}

/** Tests whose program is missing are skipped; a person should not have to look for that in a long list. */
function sayWhatIsSkipped() {
	if (!process.env.OPENLANI_CHROMIUM && !isThere("chromium", "chromium-browser", "google-chrome")) {
		say("no Chromium: the browser tests are SKIPPED. Debian: apt-get install chromium fonts-noto-cjk (or set OPENLANI_CHROMIUM)");
	}
	if (process.platform === "linux" && !isThere("bwrap")) {
		say("no bubblewrap: the sandbox tests are SKIPPED. Debian: apt-get install bubblewrap");
	}
}

await main(async () => {
	await setup({ targets: ["server", "page"] });
	sayWhatIsSkipped();
	await become(process.execPath, [join(ROOT, "node_modules", "vitest", "vitest.mjs"), "run", ...process.argv.slice(2)], { cwd: ROOT });
	sayWhatIsSkipped();
});
