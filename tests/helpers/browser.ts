/** Finds the browser for the tests that need one, and says what to install where there is none. */
import { accessSync, constants } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const CANDIDATES = [
	"/usr/bin/chromium",
	"/usr/bin/chromium-browser",
	"/usr/bin/google-chrome",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

function isExecutable(path: string): boolean {
	try {
		accessSync(path, constants.X_OK);
		return true;
	} catch {
		return false;
	}
}

/** Path of Chromium (`OPENLANI_CHROMIUM` first), or null. */
export const chromiumPath: string | null =
	[process.env.OPENLANI_CHROMIUM, ...CANDIDATES].find((path) => path && isExecutable(path)) ?? null;

/** For `describe.skipIf(noBrowser)(`… ${browserNote}`)`: a skip is seen, and says what to do. */
export const noBrowser = chromiumPath === null;
export const browserNote = noBrowser
	? "(skipped: no Chromium; install the package `chromium` and `fonts-noto-cjk`, or set OPENLANI_CHROMIUM)"
	: "";

/** Starts Chromium without anything that would reach out to the network by itself. */
export function launchBrowser(): Promise<Browser> {
	if (chromiumPath === null) throw new Error(`no browser ${browserNote}`);
	const quiet = [
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-sync",
		"--no-first-run",
		"--disable-quic",
		"--disable-gpu",
	];
	return chromium.launch({ executablePath: chromiumPath, args: quiet });
}
