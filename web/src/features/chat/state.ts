/**
 * What the page knows about conversations, as one pure reducer over live frames, pages of history and our own sends.
 * Frames may come twice (replay after a reconnect) and pages may come late: neither may double or lose anything.
 */
import type { LiveFrame, Message, PlanItem, Problem, SendMessage, ToolLine, TurnState, Usage } from "../../../../server/http/contract.ts";

/** A message of ours that the server has not confirmed yet. */
export interface Pending {
	clientId: string;
	conversation: string;
	text: string;
	attachments: { sha256: string; name: string; mimeType: string; kind: Message["attachments"][number]["kind"]; bytes: number }[];
	model: string | null;
	replaces: string | null;
	at: string;
	/** Set by the ack; the message itself follows. */
	messageId: string | null;
	refused: Problem | null;
}

/** A turn as it happens. Kept after its end, so that what was said on the way stays where it was. */
export interface LiveTurn {
	turnId: string;
	state: TurnState;
	model: string | null;
	/** Text of the step that is streaming now; empty when a stored message took its place. */
	text: string;
	step: number;
	round: number;
	thinking: boolean;
	/** Words said before a step's tools, by step. */
	said: { step: number; text: string }[];
	tools: ToolLine[];
	plan: PlanItem[];
	usage: Usage | null;
	/** Why the current step was begun anew ("429, now main-2"); null when it was not. */
	restarted: string | null;
	/** True once the reply's row is here. */
	answered: boolean;
}

export interface Thread {
	/** Oldest first, by time and id; never two of one id; superseded ones are not here. */
	messages: Message[];
	loaded: boolean;
	hasMore: boolean;
	/** Frames were missed: the next page replaces what we hold. */
	stale: boolean;
	/** Ids that came by frame since the last reset: fresher than any page. */
	fresh: Record<string, true>;
	/** Superseded or voided ids: a late page must not bring them back. */
	gone: Record<string, true>;
	turns: Record<string, LiveTurn>;
	pending: Pending[];
}

export interface ChatState {
	/** Highest sequence number applied. */
	seq: number;
	threads: Record<string, Thread>;
}

export type ChatAction =
	| { type: "frames"; frames: LiveFrame[] }
	| { type: "page"; conversation: string; messages: Message[]; hasMore: boolean; older: boolean }
	| { type: "send"; pending: Pending }
	| { type: "discard"; conversation: string; clientId: string }
	| { type: "drop"; conversation: string };

export const emptyThread: Thread = {
	messages: [],
	loaded: false,
	hasMore: false,
	stale: false,
	fresh: {},
	gone: {},
	turns: {},
	pending: [],
};
export const emptyChat: ChatState = { seq: 0, threads: {} };

export function chatReducer(state: ChatState, action: ChatAction): ChatState {
	switch (action.type) {
		case "frames":
			return action.frames.reduce(applyFrame, state);
		case "page":
			return withThread(state, action.conversation, (thread) => applyPage(thread, action));
		case "send":
			return withThread(state, action.pending.conversation, (thread) => ({
				...thread,
				pending: [...thread.pending.filter((one) => one.clientId !== action.pending.clientId), action.pending],
			}));
		case "discard":
			return withThread(state, action.conversation, (thread) => ({
				...thread,
				pending: thread.pending.filter((one) => one.clientId !== action.clientId),
			}));
		case "drop":
			return dropThread(state, action.conversation);
	}
}

function withThread(state: ChatState, conversation: string, change: (thread: Thread) => Thread): ChatState {
	const before = state.threads[conversation] ?? emptyThread;
	const after = change(before);
	return after === before ? state : { ...state, threads: { ...state.threads, [conversation]: after } };
}

function withTurn(state: ChatState, conversation: string, turnId: string, change: (turn: LiveTurn) => LiveTurn): ChatState {
	return withThread(state, conversation, (thread) => {
		const before = thread.turns[turnId] ?? newTurn(turnId);
		return { ...thread, turns: { ...thread.turns, [turnId]: change(before) } };
	});
}

function newTurn(turnId: string): LiveTurn {
	return {
		turnId,
		state: "running",
		model: null,
		text: "",
		step: 0,
		round: 1,
		thinking: false,
		said: [],
		tools: [],
		plan: [],
		usage: null,
		restarted: null,
		answered: false,
	};
}

export function isOver(state: TurnState): boolean {
	return state === "done" || state === "failed" || state === "stopped";
}

function applyFrame(state: ChatState, frame: LiveFrame): ChatState {
	if (frame.type === "hello") return frame.reset ? reset(state) : state;
	// Acks and refusals speak to this socket alone and are harmless twice; everything else counts once.
	if (frame.type === "ack") return advance(ack(state, frame.clientId, frame.messageId), frame.seq);
	if (frame.type === "refused") return advance(refuse(state, frame.clientId, frame.problem), frame.seq);
	if (frame.seq <= state.seq) return state;
	return { ...applyNew(state, frame), seq: frame.seq };
}

function advance(state: ChatState, seq: number): ChatState {
	return seq > state.seq ? { ...state, seq } : state;
}

function applyNew(state: ChatState, frame: LiveFrame): ChatState {
	switch (frame.type) {
		case "message":
			return withThread(state, frame.conversation, (thread) => applyMessage(thread, frame.message));
		case "superseded":
			return withThread(state, frame.conversation, (thread) => supersede(thread, frame.messageIds));
		case "conversation":
			return frame.change === "deleted" ? dropThread(state, frame.conversation) : state;
		case "delta":
			return withTurn(state, frame.conversation, frame.turnId, (turn) =>
				isOver(turn.state) ? turn : { ...turn, text: turn.text + frame.text, thinking: false, answered: false },
			);
		case "restart":
			return withTurn(state, frame.conversation, frame.turnId, (turn) => ({
				...turn,
				text: "",
				thinking: false,
				model: frame.model,
				restarted: frame.reason,
			}));
		case "turn":
			return withTurn(state, frame.conversation, frame.turnId, (turn) => ({
				...turn,
				state: frame.state,
				model: frame.model ?? turn.model,
				thinking: false,
			}));
		case "step":
			return withTurn(state, frame.conversation, frame.turnId, (turn) => applyStep(turn, frame));
		case "tool":
			return withTurn(state, frame.conversation, frame.turnId, (turn) => ({ ...turn, tools: mergeTool(turn.tools, frame.tool) }));
		case "plan":
			return withTurn(state, frame.conversation, frame.turnId, (turn) => ({ ...turn, plan: frame.items }));
		case "usage":
			// Of a turn that was taken back nothing begins anew.
			return frame.conversation && frame.turnId && state.threads[frame.conversation]?.turns[frame.turnId]
				? withTurn(state, frame.conversation, frame.turnId, (turn) => ({ ...turn, usage: frame.usage }))
				: state;
		default:
			return state;
	}
}

/** What was missed is unknown: every thread is to be read again, and turns that may have ended are forgotten. */
function reset(state: ChatState): ChatState {
	const threads = Object.fromEntries(
		Object.entries(state.threads).map(([id, thread]) => [id, { ...thread, stale: true, fresh: {}, gone: {}, turns: {} } satisfies Thread]),
	);
	return { seq: 0, threads };
}

function ack(state: ChatState, clientId: string, messageId: string): ChatState {
	return eachPending(state, clientId, (thread, pending) =>
		thread.messages.some((message) => message.id === messageId)
			? { ...thread, pending: thread.pending.filter((one) => one !== pending) }
			: { ...thread, pending: thread.pending.map((one) => (one === pending ? { ...one, messageId, refused: null } : one)) },
	);
}

function refuse(state: ChatState, clientId: string | null, problem: Problem): ChatState {
	if (clientId === null) return state;
	return eachPending(state, clientId, (thread, pending) => ({
		...thread,
		pending: thread.pending.map((one) => (one === pending ? { ...one, refused: problem } : one)),
	}));
}

function eachPending(state: ChatState, clientId: string, change: (thread: Thread, pending: Pending) => Thread): ChatState {
	for (const [id, thread] of Object.entries(state.threads)) {
		const pending = thread.pending.find((one) => one.clientId === clientId);
		if (pending) return withThread(state, id, (before) => change(before, pending));
	}
	return state;
}

function applyMessage(thread: Thread, message: Message): Thread {
	if (message.superseded) return supersede(thread, [message.id], message.role === "user" ? null : message.turnId);
	const pending = thread.pending.filter(
		(one) => one.messageId !== message.id && (message.clientId === null || one.clientId !== message.clientId),
	);
	const turn = message.turnId && message.role !== "user" ? thread.turns[message.turnId] : undefined;
	return {
		...thread,
		messages: insert(thread.messages, message),
		fresh: { ...thread.fresh, [message.id]: true },
		pending,
		turns: turn ? { ...thread.turns, [turn.turnId]: { ...turn, text: "", thinking: false, answered: true } } : thread.turns,
	};
}

/** `turnId`: the turn of an answer that comes as taken back already (a replay), so that nothing of it stays. */
function supersede(thread: Thread, ids: string[], turnId: string | null = null): Thread {
	const set = new Set(ids);
	const turnIds = new Set(thread.messages.filter((message) => set.has(message.id)).map((message) => message.turnId));
	if (turnId) turnIds.add(turnId);
	return {
		...thread,
		messages: thread.messages.filter((message) => !set.has(message.id)),
		gone: { ...thread.gone, ...Object.fromEntries(ids.map((id) => [id, true as const])) },
		// What such a turn still shows (tools, half an answer) belongs to what was taken back.
		turns: Object.fromEntries(Object.entries(thread.turns).filter(([id, turn]) => !(turnIds.has(id) && isOver(turn.state)))),
	};
}

function dropThread(state: ChatState, conversation: string): ChatState {
	const { [conversation]: _gone, ...threads } = state.threads;
	return { ...state, threads };
}

function applyStep(turn: LiveTurn, frame: Extract<LiveFrame, { type: "step" }>): LiveTurn {
	switch (frame.state) {
		case "started":
			return { ...turn, step: frame.step, round: frame.round, text: "", thinking: false, restarted: null };
		case "thinking":
			return { ...turn, step: frame.step, thinking: true };
		case "finished": {
			const text = (frame.text ?? turn.text).trim();
			// The last step's text stays as streamed until the reply's row takes its place.
			return {
				...turn,
				thinking: false,
				text: turn.answered ? "" : text,
				said: text === "" ? turn.said : [...turn.said.filter((one) => one.step !== frame.step), { step: frame.step, text }],
			};
		}
	}
}

function mergeTool(tools: ToolLine[], tool: ToolLine): ToolLine[] {
	const at = tools.findIndex((one) => one.recordId === tool.recordId);
	return at < 0 ? [...tools, tool] : tools.with(at, tool);
}

function applyPage(thread: Thread, page: { messages: Message[]; hasMore: boolean; older: boolean }): Thread {
	const kept = thread.stale && !page.older ? thread.messages.filter((message) => thread.fresh[message.id]) : thread.messages;
	let messages = kept;
	for (const message of page.messages) {
		if (message.superseded || thread.gone[message.id] || thread.fresh[message.id]) continue;
		messages = insert(messages, message);
	}
	const ids = new Set(messages.map((message) => message.id));
	const clientIds = new Set(messages.map((message) => message.clientId));
	return {
		...thread,
		messages,
		loaded: true,
		stale: page.older ? thread.stale : false,
		hasMore: page.older || !thread.loaded || thread.stale ? page.hasMore : thread.hasMore,
		pending: thread.pending.filter((one) => !clientIds.has(one.clientId) && !(one.messageId && ids.has(one.messageId))),
	};
}

function insert(messages: Message[], message: Message): Message[] {
	const at = messages.findIndex((one) => one.id === message.id);
	if (at >= 0) return messages.with(at, message);
	let place = messages.length;
	while (place > 0 && comesAfter(messages[place - 1] as Message, message)) place -= 1;
	return messages.toSpliced(place, 0, message);
}

function comesAfter(one: Message, other: Message): boolean {
	return one.at === other.at ? one.id > other.id : one.at > other.at;
}

/** One thing on the page, in reading order. */
export type Entry =
	| { kind: "message"; key: string; message: Message; turn: LiveTurn | null }
	| { kind: "pending"; key: string; pending: Pending }
	| { kind: "turn"; key: string; turn: LiveTurn };

/** The thread as it is shown: stored messages, what we just sent, and the turns that have no answer yet. */
export function entriesOf(thread: Thread): Entry[] {
	const replaced = thread.pending.find((one) => one.replaces !== null && one.refused === null)?.replaces ?? null;
	const cut = replaced === null ? -1 : thread.messages.findIndex((message) => message.id === replaced);
	const messages = cut < 0 ? thread.messages : thread.messages.slice(0, cut);
	const lastOfTurn = new Map<string, string>();
	for (const message of messages) if (message.turnId && message.role !== "user") lastOfTurn.set(message.turnId, message.id);
	const open = cut < 0 ? Object.values(thread.turns).filter((turn) => isUnanswered(turn, lastOfTurn)) : [];
	const openIds = new Set(open.map((turn) => turn.turnId));
	const entries: Entry[] = messages.map((message) => {
		// The reply takes the place of its streaming turn (same key), so nothing is mounted anew when it is done.
		const turnId = message.turnId && lastOfTurn.get(message.turnId) === message.id && !openIds.has(message.turnId) ? message.turnId : null;
		return {
			kind: "message",
			key: turnId ? `turn-${turnId}` : message.role === "user" ? (message.clientId ?? message.id) : message.id,
			message,
			turn: turnId ? (thread.turns[turnId] ?? null) : null,
		};
	});
	for (const turn of open) entries.push({ kind: "turn", key: `turn-${turn.turnId}`, turn });
	for (const pending of thread.pending) entries.push({ kind: "pending", key: pending.clientId, pending });
	return entries;
}

function isUnanswered(turn: LiveTurn, lastOfTurn: Map<string, string>): boolean {
	if (lastOfTurn.has(turn.turnId) && turn.answered) return false;
	if (!isOver(turn.state)) return true;
	return !lastOfTurn.has(turn.turnId) && turn.text !== "";
}

/** The running or queued turn, or null when the agent is idle here. */
export function activeTurn(thread: Thread): LiveTurn | null {
	return Object.values(thread.turns).find((turn) => !isOver(turn.state)) ?? null;
}

/** A pending message as the frame that (re)sends it. The same client id twice is one message. */
export function toSendFrame(pending: Pending): SendMessage & { type: "send"; conversation: string; clientId: string } {
	return {
		type: "send",
		clientId: pending.clientId,
		conversation: pending.conversation,
		text: pending.text,
		attachments: pending.attachments.map(({ sha256, name }) => ({ sha256, name })),
		model: pending.model,
		...(pending.replaces ? { replaces: pending.replaces } : {}),
	};
}
