/**
 * Settings that are accepted, because config.yaml is one for all versions, and change nothing in this one: what they belong to is not there
 * yet. Whoever sets one is told, so that nobody takes it for a protection or an order that is at work.
 */
import { isDeepStrictEqual } from "node:util";
import { defaults, isPlain, type Plain } from "./defaults.ts";
import type { ConfigProblem } from "./environment.ts";
import type { Path } from "./expand.ts";
import { keyOf } from "./issues.ts";

interface Idle {
	path: string[];
	/** What is missing, in words that stand behind "there is no". */
	missing: string;
	/** Settings that say what is so already: "off" where nothing runs. */
	isTrueAnyway?(value: unknown): boolean;
}

const isOffMode = (value: unknown) => isPlain(value) && value.mode === "off";
const isDisabled = (value: unknown) => isPlain(value) && value.enabled === false;
const areDisabled = (value: unknown) => isPlain(value) && Object.values(value).every(isDisabled);
const areDisabledLists = (value: unknown) =>
	isPlain(value) && Object.values(value).every((list) => !Array.isArray(list) || list.every(isDisabled));
const isNone = (value: unknown) => value === "none";

export const idleSettings: readonly Idle[] = [
	...["critique", "image", "tts", "stt"].map((role) => ({ path: ["roles", role], missing: `use for the role ${role}` })),
	{ path: ["agent", "plan"], missing: "choice of when to plan: the model decides" },
	{ path: ["agent", "critique"], missing: "critique of answers", isTrueAnyway: isOffMode },
	{ path: ["heartbeat"], missing: "heartbeat", isTrueAnyway: isDisabled },
	{ path: ["channels"], missing: "channel but the page, the API and the command line", isTrueAnyway: areDisabledLists },
	{ path: ["people", "pairingMinutes"], missing: "pairing" },
	{ path: ["mcp"], missing: "use of MCP servers", isTrueAnyway: (value) => isPlain(value) && areDisabled(value.servers) },
	{ path: ["safety", "sandbox"], missing: "sandbox, and nothing that would need one", isTrueAnyway: isNone },
	{ path: ["safety", "sandboxLimits"], missing: "sandbox, and nothing that would need one" },
	{ path: ["safety", "egress"], missing: "access to the web" },
	{ path: ["safety", "filter"], missing: "filter: everything passes" },
	{ path: ["web"], missing: "access to the web" },
	{ path: ["extensions"], missing: "extension" },
];

function at(value: unknown, path: readonly string[]): unknown {
	return path.reduce<unknown>((inner, part) => (isPlain(inner) ? inner[part] : undefined), value);
}

/** The settings of `shown` (defaults laid under) that differ from the defaults and yet change nothing. */
export function withoutEffect(shown: Plain, lineAt: (path: Path) => number | null): ConfigProblem[] {
	return idleSettings.flatMap(({ path, missing, isTrueAnyway }) => {
		const value = at(shown, path);
		if (isDeepStrictEqual(value, at(defaults, path)) || isTrueAnyway?.(value)) return [];
		return [{ key: keyOf(path), line: lineAt(path), message: `has no effect in this version: there is no ${missing}` }];
	});
}
