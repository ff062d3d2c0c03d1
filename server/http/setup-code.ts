import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** The one-time code of a start. It works until an account exists, and once. */
export interface SetupCode {
	readonly code: string;
	/** Whether it is the right one; uses nothing up. */
	check(given: string): Promise<boolean>;
	redeem(given: string): Promise<boolean>;
}

export function createSetupCode(hasUser: () => Promise<boolean>): SetupCode {
	const code = randomBytes(18).toString("base64url");
	const digest = (text: string) => createHash("sha256").update(text).digest();
	let used = false;
	const check = async (given: string) => !used && timingSafeEqual(digest(given), digest(code)) && !(await hasUser());
	return {
		code,
		check,
		async redeem(given) {
			if (!(await check(given))) return false;
			used = true;
			return true;
		},
	};
}
