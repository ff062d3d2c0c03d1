/** What a stored error says: its kind, and the words of the server that refused. Pure. */
import type { en } from "../../lib/locales/en.ts";
import { en as words } from "../../lib/locales/en.ts";

export type FailureKind = keyof typeof en.calls.failure;

/** `kind` is null for a text that is no model's error. `said` leaves out what only the program itself says ("stopped while waiting"). */
export function failureOf(stored: string): { kind: FailureKind | null; said: string } {
	const [, kind = "", detail = ""] = /^([a-z-]+): ([\s\S]*)$/.exec(stored) ?? [];
	if (!Object.hasOwn(words.calls.failure, kind)) return { kind: null, said: stored };
	const code = /^the connection failed: (.+)$/.exec(detail)?.[1];
	return { kind: kind as FailureKind, said: code ?? (/^stopped\b/.test(detail) ? "" : detail) };
}
