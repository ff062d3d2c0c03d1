import * as argon2 from "@node-rs/argon2";
import { describe, expect, it } from "vitest";
import { createPasswords } from "../../../server/http/passwords.ts";

function lateArgon2() {
	const log: string[] = [];
	const note = (event: string) => void log.push(event);
	let isThere = false;
	const passwords = createPasswords({ info: note, error: note }, async () => {
		if (!isThere) throw new Error("Cannot find module '@node-rs/argon2'\nRequire stack:\n- /home/somebody/main.js");
		return argon2;
	});
	return { log, passwords, putThere: () => (isThere = true) };
}

describe("what checks passwords is not there", () => {
	it("which is no wrong password, is said once in the log, and is over when it is there again", async () => {
		const { log, passwords, putThere } = lateArgon2();
		const hash = await argon2.hash("correct horse");
		for (const ask of [() => passwords.ready(), () => passwords.verify(hash, "correct horse"), () => passwords.hash("another")])
			await expect(ask()).rejects.toMatchObject({ status: 503, code: "passwords-unavailable" });
		expect(log).toEqual(["passwords.not-loaded"]);
		putThere();
		expect(await passwords.verify(hash, "correct horse")).toBe(true);
		expect(await passwords.verify(hash, "wrong")).toBe(false);
		expect(await passwords.verify(null, "correct horse")).toBe(false);
		expect(log).toEqual(["passwords.not-loaded", "passwords.loaded"]);
	});
});
