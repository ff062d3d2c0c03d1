/** Password hashing off the event loop, few at a time: each takes tens of milliseconds and some 20 MB. */
import type { HttpDeps } from "./deps.ts";
import { HttpProblem } from "./problem.ts";

const AT_ONCE = 2;
const WAITING = 32;

/** A start does not wait for the native code; this long after it, it is loaded before somebody may take its file away. */
const LOAD_AFTER_MS = 1000;

type Argon2 = Pick<typeof import("@node-rs/argon2"), "hash" | "verify">;

export interface Passwords {
	/** Loads what hashes. Throws a 503 where that is gone, as it is while packages are installed anew; the next call tries again. */
	ready(): Promise<void>;
	/** Loads it when the start has been over for a moment. The answer calls that off. */
	readySoon(): () => void;
	hash(password: string): Promise<string>;
	/** A null hash (no such user) takes as long as a wrong password. */
	verify(hash: string | null, password: string): Promise<boolean>;
}

export function createPasswords(
	log: Pick<HttpDeps["log"], "info" | "error">,
	load: () => Promise<Argon2> = () => import("@node-rs/argon2"),
): Passwords {
	let isMissing = false;
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
	async function argon2(): Promise<Argon2> {
		try {
			const loaded = await load();
			if (isMissing) log.info("passwords.loaded");
			isMissing = false;
			return loaded;
		} catch (error) {
			// Whoever tries again and again does not fill the log with it.
			if (!isMissing) log.error("passwords.not-loaded", { message: (error as Error).message.split("\n")[0] });
			isMissing = true;
			throw new HttpProblem(
				503,
				"passwords-unavailable",
				"Passwords cannot be checked now: a part of the program is missing. If packages are being installed, try again when that is done; else install them and restart.",
				{ headers: { "retry-after": "10" } },
			);
		}
	}

	async function ready(): Promise<void> {
		await argon2();
	}

	return {
		ready,
		readySoon() {
			const timer = setTimeout(() => void ready().catch(() => undefined), LOAD_AFTER_MS).unref();
			return () => clearTimeout(timer);
		},
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
