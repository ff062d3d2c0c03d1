/** What the settings and a tool itself say of its calls, before anybody is asked. */
import type { GateTurn } from "../agent/types.ts";
import type { ApprovalPolicy } from "./approvals.ts";
import { isAutomatic } from "./approvals.ts";

/** A tool of its name, or one of a pattern with `*` in it (`files__*`). */
function fits(pattern: string, tool: string): boolean {
	const [head = "", ...rest] = pattern.split("*");
	if (rest.length === 0) return pattern === tool;
	if (!tool.startsWith(head)) return false;
	let at = head.length;
	for (const [index, part] of rest.entries()) {
		const found = index === rest.length - 1 ? Math.max(tool.length - part.length, at) : tool.indexOf(part, at);
		if (found < at || !tool.startsWith(part, found)) return false;
		at = found + part.length;
	}
	return true;
}

/** `safety.approvals.tools` for one tool: its own name goes before a pattern, a longer pattern before a shorter one. Null where none fits. */
export function settingFor(tool: string, settings: Record<string, ApprovalPolicy>): ApprovalPolicy | null {
	if (Object.hasOwn(settings, tool)) return settings[tool] ?? null;
	const [nearest] = Object.keys(settings)
		.filter((pattern) => fits(pattern, tool))
		.sort((one, other) => other.length - one.length);
	return nearest === undefined ? null : (settings[nearest] ?? null);
}

/**
 * `deny` and `ask` hold in every turn. `allow` lifts what the tool itself asks for, but only in a turn of the master's own that has read
 * nothing from others. A turn can always be ended.
 */
export function policyFor(
	tool: { name: string; approval?: "ask" },
	settings: Record<string, ApprovalPolicy>,
	turn: Pick<GateTurn, "tier" | "origin" | "tainted">,
): ApprovalPolicy {
	if (tool.name === "finish") return "allow";
	const setting = settingFor(tool.name, settings);
	if (setting === "deny" || setting === "ask") return setting;
	const isOwn = turn.tier === "master" && !isAutomatic(turn.origin) && turn.tainted.length === 0;
	return setting === "allow" && isOwn ? "allow" : (tool.approval ?? "allow");
}
