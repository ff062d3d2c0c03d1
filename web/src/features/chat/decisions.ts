/** Approvals as the thread shows them, pure. */
import type { Approval, Message } from "../../../../server/http/contract.ts";

/** What waits in one conversation, in the order it was asked for. */
export function waitingIn(approvals: Approval[], conversation: string): Approval[] {
	return approvals
		.filter((one) => one.state === "pending" && one.conversation === conversation)
		.sort((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : a.id < b.id ? -1 : 1));
}

/** True for a message that no person typed: a decision on an approval, said to the agent. */
export function isDecision(message: Pick<Message, "role" | "clientId">): boolean {
	return message.role === "user" && message.clientId?.startsWith("approval:") === true;
}
