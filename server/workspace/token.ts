/** The API token: the environment's, or one made at first start and kept in the home. */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeFileAtomic } from "./atomic.ts";

export const tokenPath = (home: string) => join(home, "data", "token");

/** The token of the home; null when none was made yet. A file too short to be one (torn, emptied) counts as none. */
export async function readToken(home: string): Promise<string | null> {
	try {
		const token = (await readFile(tokenPath(home), "utf8")).replace(/^\uFEFF/, "").trim();
		return token.length >= 16 ? token : null;
	} catch {
		return null;
	}
}

/** The token in force; one is made (mode 0600) when there is none. `own` tells that a person chose it: `OPENLANI_TOKEN`. */
export async function ensureToken(home: string, environmentToken: string | null): Promise<{ token: string; own: boolean }> {
	if (environmentToken !== null) return { token: environmentToken, own: true };
	const kept = await readToken(home);
	if (kept !== null) {
		await chmod(tokenPath(home), 0o600).catch(() => undefined);
		return { token: kept, own: false };
	}
	const token = `lani_${randomBytes(24).toString("base64url")}`;
	await mkdir(join(home, "data"), { recursive: true, mode: 0o700 });
	await writeFileAtomic(tokenPath(home), `${token}\n`, { mode: 0o600 });
	return { token, own: false };
}
