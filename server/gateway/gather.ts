/** What a claimed turn brings to the agent: its messages, what memory has, the prompt's blocks. */
import type { Exchange, PromptBlock, ToolBox, TurnInput, TurnLimits, TurnMessage } from "../agent/types.ts";
import type { Memory, Recalled, Scope } from "../memory/memory.ts";
import type { Claim } from "../store/store.ts";

/** The settings that a turn reads when it begins. */
export interface TurnSettings {
	timezone: string;
	locale: string;
	limits: TurnLimits;
}

export interface GatherOptions {
	memory: Memory;
	settings(claim: Claim): TurnSettings;
	/** SOUL, Agent.md and the rules: stable from turn to turn. */
	blocks(claim: Claim): Promise<PromptBlock[]>;
	/** What a person said in these messages, as the prompt says it. */
	saidOf(messages: TurnMessage[]): string;
	/** Recall that began when the message came in, or null. */
	recalledEarly(messageIds: string[], text: string): Promise<Recalled[]> | null;
	tools(claim: Claim): ToolBox;
	/** Estimated tokens of a text in parts for a model, by name ("" = any). Long parts come again from turn to turn. */
	countTokens(modelName: string, parts: string[]): number;
	log: { warn(event: string, data?: Record<string, unknown>): void };
}

/** What a turn's prompt was made of: told by `GET /turns/:id`. */
export interface Why {
	blocks: { name: string; chars: number; tokens: number }[];
	recalled: { text: string; score: number; at: string; source: string; by: string }[];
	/** Steps that were folded out of the last request. */
	folded: number;
	model: { picked: string | null; reason: string | null };
}

/** Whose memory a claimed turn may use, and who reads along. */
export function scopeOf(claim: Claim): Scope {
	const { groupId } = claim.conversation;
	return {
		owner: groupId ? `group:${groupId}` : claim.turn.personId,
		conversationId: claim.conversation.id,
		audience: groupId ? "group" : "private",
	};
}

/** The exchange that a finished turn was, as memory keeps it: the same bytes as in the request, so that providers' caches hit. */
export function toExchange(claim: Claim, said: string, first: TurnMessage | undefined, replied: string, tools: string | null): Exchange {
	const exchange: Exchange = {
		id: claim.turn.id,
		at: first?.at ?? claim.turn.createdAt,
		channel: claim.conversation.channel,
		from: first?.from ?? null,
		said,
		replied,
	};
	if (tools) exchange.tools = tools;
	return exchange;
}

/** Answers how a claimed turn is gathered; `why` is what its prompt was made of. */
export function createGather(options: GatherOptions): (claim: Claim) => Promise<{ made: TurnInput; why: Why }> {
	const { log } = options;
	const schemas = new WeakMap<ToolBox, string>();

	function sizeOf(name: string, parts: string[]): Why["blocks"][number] {
		return { name, chars: parts.reduce((sum, part) => sum + part.length, 0), tokens: options.countTokens("", parts) };
	}

	function schemasOf(box: ToolBox): string {
		const text =
			schemas.get(box) ?? JSON.stringify(box.list().map(({ name, description, parameters }) => ({ name, description, parameters })));
		schemas.set(box, text);
		return text;
	}

	async function input(claim: Claim, recalled: Recalled[], blocks: PromptBlock[], history: Exchange[]): Promise<TurnInput> {
		const { turn, conversation } = claim;
		const settings = options.settings(claim);
		const limits: TurnLimits = { ...settings.limits };
		for (const row of claim.rows) {
			if (row.limits.maxSteps) limits.maxSteps = Math.min(limits.maxSteps, row.limits.maxSteps);
			if (row.limits.maxRounds) limits.maxRounds = Math.min(limits.maxRounds, row.limits.maxRounds);
		}
		return {
			turnId: turn.id,
			conversationId: conversation.id,
			channel: conversation.channel,
			personId: turn.personId,
			tier: turn.tier,
			groupId: conversation.groupId,
			origin: turn.origin,
			blocks,
			history,
			messages: claim.rows.map((row) => row.message),
			recalled: recalled.map((one) => one.text),
			steps: claim.steps,
			plan: turn.plan,
			model: claim.rows.findLast((row) => row.model)?.model ?? conversation.model,
			limits,
			timezone: settings.timezone,
			locale: settings.locale,
		};
	}

	return async function gather(claim: Claim): Promise<{ made: TurnInput; why: Why }> {
		const scope = scopeOf(claim);
		const said = claim.rows.map((row) => row.message.text).join("\n");
		const [base, remembered, history, recalled] = await Promise.all([
			options.blocks(claim),
			options.memory.blocks(scope),
			options.memory.history(scope),
			(
				options.recalledEarly(
					claim.rows.map((row) => row.id),
					said,
				) ?? options.memory.recall(scope, said)
			).catch((error: unknown) => {
				log.warn("memory.recall-failed", { error: (error as Error).message, turnId: claim.turn.id });
				return [];
			}),
		]);
		const made = await input(
			claim,
			recalled,
			[...base, ...remembered],
			history.filter((exchange) => exchange.id !== claim.turn.id),
		);
		const exchanges: string[] = [];
		for (const exchange of made.history) exchanges.push(exchange.said, exchange.replied);
		const sizes = made.blocks.map(({ name, text }) => sizeOf(name, [text]));
		sizes.push(
			sizeOf("tools", [schemasOf(options.tools(claim))]),
			sizeOf("history", exchanges),
			sizeOf("messages", [said]),
			sizeOf("recalled", made.recalled),
		);
		const why: Why = {
			blocks: sizes.filter((block) => block.chars > 0),
			recalled: recalled.map(({ text, score, at, source, by }) => ({ text, score, at: new Date(at).toISOString(), source, by })),
			folded: 0,
			model: { picked: made.model, reason: null },
		};
		return { made, why };
	};
}
