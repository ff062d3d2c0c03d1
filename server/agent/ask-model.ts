/** One request of a turn: built within its budget, streamed, accounted for. */
import type { CallSource, ModelReply, ModelRequest, ToolSchema } from "../model/model.ts";
import type { Tool } from "../tools/tool.ts";
import { ask, errorKind } from "./ask.ts";
import { addUsage, toolChars } from "./limits.ts";
import { buildRequest } from "./request.ts";
import { tooLargeSentence } from "./sentences.ts";
import { type Ending, type Flow, ours, type Turn } from "./turn-state.ts";
import type { TurnInput } from "./types.ts";

export interface Asked {
	reply: ModelReply;
	startedAt: number;
}

/** Builds the request and streams the answer. A refusal for length is tried once more with a request half the size. */
export async function* askModel(turn: Turn, first: boolean): Flow<Asked | { end: Ending }> {
	const { input, deps, signal } = turn;
	const tools = deps.tools.list();
	const size = toolChars(tools);
	const built = buildRequest(turn, size, situationNotes(turn));
	if (built.tooLarge) {
		const { chars, room, largest } = built.tooLarge;
		return {
			end: ours(tooLargeSentence(turn.language, chars, room, largest), {
				kind: "context-length",
				message: `the request cannot be made to fit: ${largest}`,
			}),
		};
	}
	if (built.folded > turn.folded || built.dropped > turn.dropped) yield { type: "folded", steps: built.folded, chars: built.chars };
	turn.folded = built.folded;
	turn.dropped = built.dropped;
	if (!turn.promptTold || built.repairs.length > 0) yield { type: "prompt", blocks: promptSizes(turn, size), repairs: built.repairs };
	turn.promptTold = true;
	const number = turn.steps.length + 1;
	yield { type: "step-started", step: number, round: turn.round, chars: built.chars };
	const { maxOutputTokens, temperature } = input.limits;
	const request: ModelRequest = {
		messages: built.messages,
		tools: tools.map(schemaOf),
		context: {
			source: SOURCES[input.origin] ?? "chat",
			conversationId: input.conversationId,
			turnId: input.turnId,
			personId: input.personId,
		},
		model: input.model,
		role: "chat",
	};
	if (maxOutputTokens !== undefined) request.maxOutputTokens = maxOutputTokens;
	if (temperature !== undefined) request.temperature = temperature;
	const startedAt = deps.clock.now();
	turn.partial = { text: "" };
	try {
		const reply = yield* ask(deps.model, request, { step: number, partial: turn.partial, mayBeSilent: input.origin !== "human" }, signal);
		turn.usage = addUsage(turn.usage, reply.usage);
		turn.model = reply.model;
		turn.modelName = reply.modelName;
		return { reply, startedAt };
	} catch (error) {
		if (signal.aborted || !first || errorKind(error) !== "context-length") throw error;
		turn.squeeze = Math.min(turn.squeeze, built.chars / input.limits.requestChars) / 2;
		return yield* askModel(turn, false);
	}
}

const SOURCES: { [origin in TurnInput["origin"]]?: CallSource } = { alarm: "alarm", heartbeat: "heartbeat", job: "job" };

function situationNotes(turn: Turn): string[] {
	const { maxSteps, maxRounds } = turn.input.limits;
	const left = maxSteps - turn.asked;
	return left <= 3 && turn.asked > 0
		? [`Steps left in this round: ${left}${turn.round >= maxRounds ? "; there is no further round" : ""}.`]
		: [];
}

function promptSizes(turn: Turn, tools: number): { name: string; chars: number }[] {
	const { input } = turn;
	const sizes = input.blocks.map((block) => ({ name: block.name, chars: block.text.length }));
	sizes.push(
		{ name: "history", chars: input.history.reduce((sum, { said, replied }) => sum + said.length + replied.length, 0) },
		{ name: "messages", chars: input.messages.reduce((sum, { text }) => sum + text.length, 0) },
		{ name: "recalled", chars: input.recalled.reduce((sum, text) => sum + text.length, 0) },
		{ name: "plan", chars: turn.plan.reduce((sum, { text }) => sum + text.length, 0) },
		{ name: "tools", chars: tools },
	);
	return sizes;
}

const schemas = new WeakMap<Tool, ToolSchema>();

/** What a model sees of a tool: the same object each time, so that whoever translates it does so once. */
function schemaOf(tool: Tool): ToolSchema {
	const { name, description, parameters } = tool;
	const schema = schemas.get(tool) ?? { name, description, parameters };
	schemas.set(tool, schema);
	return schema;
}
