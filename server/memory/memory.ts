/** The memory as the gateway uses it. Every call names the owner and the audience: there is no way to ask for "all". */
import type { Exchange, PromptBlock } from "../agent/types.ts";

/** Whose memory, and who will see what comes out of it. */
export interface Scope {
	/** Person id, or `group:<id>`. `master` for the master. */
	owner: string;
	/** The conversation in which the result is used. */
	conversationId: string;
	/** `private`: only the owner reads along; `group`: others do. */
	audience: "private" | "group";
}

export interface Recalled {
	id: string;
	text: string;
	at: number;
	source: string;
	score: number;
	by: "semantic" | "keyword";
}

export interface Memory {
	/** The conversation's last exchanges, oldest first, at most `memory.exchanges`; while a compression is pending the oldest four are left out at once. */
	history(scope: Scope): Promise<Exchange[]>;
	/** The stable prompt blocks that come from memory: identity, master or user section, summary lines. */
	blocks(scope: Scope): Promise<PromptBlock[]>;
	/** Memories close to `text`: at most the configured number by meaning and by keyword; empty when nothing is close. */
	recall(scope: Scope, text: string): Promise<Recalled[]>;
	/** Called after delivery: keeps the exchange and starts what follows from it in the background. Safe to call twice with the same exchange id. */
	remember(scope: Scope, exchange: Exchange): Promise<void>;
	/** Something that was said in this conversation has been taken back: what memory keeps of it leaves before it is next asked for. */
	takenBack(conversationId: string): void;
	/** Ends background work; what is pending is taken up at the next start. */
	stop(): Promise<void>;
}
