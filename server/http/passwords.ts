/** Password hashing off the event loop, few at a time: each takes tens of milliseconds and some 20 MB. */
import { HttpProblem } from "./problem.ts";

const AT_ONCE = 2;
const WAITING = 32;

export interface Passwords {
	hash(password: string): Promise<string>;
	/** A null hash (no such user) takes as long as a wrong password. */
	verify(hash: string | null, password: string): Promise<boolean>;
}

export function createPasswords(): Passwords {
	let running = 0;
	let decoy: string | null = null;
	const waiting: (() => void)[] = [];

	async function limited<T>(work: () => Promise<T>): Promise<T> {
		if (running >= AT_ONCE) {
			if (waiting.length >= WAITING)
				throw new HttpProblem(429, "too-many-attempts", "Too many people are signing in at once.", { headers: { "retry-after": "2" } });
			await new Promise<void>((resolve) => waiting.push(resolve));
		} else running += 1;
		try {
			return await work();
		} finally {
			const next = waiting.shift();
			if (next) next();
			else running -= 1;
		}
	}

	// argon2id with the library's defaults (19 MiB, 2 passes), which follow the usual recommendation.
	const argon2 = () => import("@node-rs/argon2");

	return {
		hash: (password) => limited(async () => (await argon2()).hash(password)),
		verify: (hash, password) =>
			limited(async () => {
				const { hash: make, verify } = await argon2();
				decoy ??= await make("no such user");
				try {
					return (await verify(hash ?? decoy, password)) && hash !== null;
				} catch {
					// A hash that cannot be read lets nobody in.
					return false;
				}
			}),
	};
}
