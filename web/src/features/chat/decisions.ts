/** Approvals as the thread shows them, pure. */
import type { Approval, Message } from "../../../../server/http/contract.ts";

/** What waits in one conversation, in the order it was asked for. */
export function waitingIn(approvals: Approval[], conversation: string): Approval[] {
	return approvals
		.filter((one) => one.state === "pending" && one.conversation === conversation)
		.sort((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : a.id < b.id ? -1 : 1));
}

/** What became of a call that was put aside: the decision on exactly it, in its turn or, when it was asked for again, later. */
export function decisionOn(approvals: Approval[], turnId: string | null, tool: string, args: string): Approval | null {
	let wanted: string;
	try {
		wanted = canonical(JSON.parse(args));
	} catch {
		return null;
	}
	const same = approvals.filter((one) => one.tool === tool && canonical(one.arguments) === wanted);
	return same.find((one) => one.turnId === turnId) ?? same[0] ?? null;
}

/** The same text for the same value, whatever the order of its keys. */
function canonical(value: unknown): string {
	return JSON.stringify(value, (_key, part: unknown) =>
		typeof part === "object" && part !== null && !Array.isArray(part)
			? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
			: part,
	);
}

/** True for a message that no person typed: a decision on an approval, said to the agent. */
export function isDecision(message: Pick<Message, "role" | "clientId">): boolean {
	return message.role === "user" && message.clientId?.startsWith("approval:") === true;
}
