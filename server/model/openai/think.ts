/**
 * Takes thinking out of streamed text: every tag form we know, cut anywhere, while the same tags inside a code block or code span
 * survive. Feeds on pieces and never gives out a character that could still turn out to be thinking.
 */

export interface Piece {
	text: string;
	thought: string;
	/** True: all text given out so far was thinking (a closing tag came whose opening one stood in the server's template). */
	void: boolean;
}

export interface ThinkFilter {
	push(text: string): Piece;
	/** The rest: what was held back is decided now. */
	end(): Piece;
	/** How the answer went: whether a closing tag without an opening one was met. */
	readonly strayClose: boolean;
}

const NAMES = "think|thinking|thought|thoughts|reasoning|seed:think|mm:think|ant_?thinking|scratchpad|inner_monologue";
const OPEN_SOURCE = `<\\s*(?:${NAMES})(?:\\s[^<>]{0,80})?>|<\\|(?:begin_of_)?(?:thought|think|thinking)\\|>|<\\|channel\\|>\\s*analysis\\s*(?:<\\|message\\|>)?|<\\|channel>\\s*thought|\\[THINK\\]|◁think▷`;
const OPEN = new RegExp(OPEN_SOURCE, "iy");
const OPEN_INSIDE = new RegExp(OPEN_SOURCE, "ig");
const CLOSE_SOURCE = `<\\s*/\\s*(?:${NAMES})\\s*>|<\\|(?:end_of_|/)(?:thought|think|thinking)\\|>|\\[/THINK\\]|◁/think▷`;
const CLOSE = new RegExp(CLOSE_SOURCE, "iy");
/** Inside thinking these end it as well; outside they are nothing of ours. */
const CLOSE_INSIDE = new RegExp(`${CLOSE_SOURCE}|<\\|end\\|>|<\\|channel\\|>\\s*final\\s*(?:<\\|message\\|>)?|<channel\\|>`, "ig");
/** Markers that only frame the answer. */
const FRAME = /<\|(?:begin|end)_of_solution\|>|<\|channel\|>\s*final\s*<\|message\|>|<\|start\|>\s*assistant/iy;
const SPECIAL = /[`~<[◁\n]/g;
/** What may stand before a fence: indentation, list and quotation marks. */
const LINE_PREFIX = /^[\s>*+\-\d.)]*$/;
/** The longest tag that is waited for. */
const TAG_LENGTH = 100;
/** A code span that has not ended by then is none. */
const SPAN_LENGTH = 400;

/** `assumeThinking`: this model is known to start inside thinking; text waits for the closing tag. */
export function createThinkFilter(assumeThinking = false): ThinkFilter {
	let held = "";
	let mode: "text" | "thinking" | "fence" = "text";
	let fence = { mark: "`", length: 3 };
	let fenceLine = "";
	let lineStart = true;
	let visible = false;
	let opened = false;
	let strayClose = false;
	/** Text that waits because the model is known to think without an opening tag. */
	let waiting: string | null = assumeThinking ? "" : null;
	/** Opening tags met inside thinking: thinking within thinking, or only talk about the tag. */
	let nested = 0;
	/** Text after a closing tag that may have closed an inner one only: thinking when another closing tag comes, the answer when none does. */
	let doubtful: string | null = null;

	function run(final: boolean): Piece {
		const piece: Piece = { text: "", thought: "", void: false };
		const give = (text: string) => {
			if (doubtful !== null) {
				doubtful += text;
				return;
			}
			// White space that only separated the thinking from the answer.
			const shown = visible || !opened ? text : text.trimStart();
			if (shown === "") return;
			visible = true;
			piece.text += shown;
		};
		const think = (thought: string) => {
			piece.thought += thought;
			nested += thought.match(OPEN_INSIDE)?.length ?? 0;
		};
		let at = 0;
		const hold = (from: number) => {
			held = held.slice(from);
			return piece;
		};
		while (at < held.length) {
			if (mode === "thinking") {
				CLOSE_INSIDE.lastIndex = at;
				const close = CLOSE_INSIDE.exec(held);
				if (!close) {
					const keep = final ? held.length : tailStart(held, at);
					think(held.slice(at, keep));
					return hold(keep);
				}
				think(held.slice(at, close.index));
				at = close.index + close[0].length;
				mode = "text";
				if (nested > 0) {
					nested--;
					doubtful ??= "";
				}
				lineStart = true;
				continue;
			}
			if (mode === "fence") {
				const end = held.indexOf("\n", at);
				const upTo = end < 0 ? held.length : end + 1;
				fenceLine += held.slice(at, upTo);
				give(held.slice(at, upTo));
				at = upTo;
				if (end < 0) break;
				if (closesFence(fenceLine, fence)) mode = "text";
				fenceLine = "";
				lineStart = true;
				continue;
			}
			SPECIAL.lastIndex = at;
			const next = SPECIAL.exec(held)?.index ?? held.length;
			if (next > at) {
				const plain = held.slice(at, next);
				if (lineStart && !LINE_PREFIX.test(plain)) lineStart = false;
				give(plain);
				at = next;
				continue;
			}
			const char = held[at] as string;
			if (char === "\n") {
				give(char);
				lineStart = true;
				at++;
				continue;
			}
			if (char === "`" || char === "~") {
				let end = at + 1;
				while (end < held.length && held[end] === char) end++;
				if (end === held.length && !final) return hold(at);
				const length = end - at;
				if (lineStart && length >= 3) {
					fence = { mark: char, length };
					mode = "fence";
					fenceLine = " ";
					give(held.slice(at, end));
					at = end;
					continue;
				}
				lineStart = false;
				if (char === "~") {
					give(held.slice(at, end));
					at = end;
					continue;
				}
				const span = spanEnd(held, end, length);
				if (span === "open" && !final && held.length - at < SPAN_LENGTH) return hold(at);
				const upTo = typeof span === "number" ? span : end;
				give(held.slice(at, upTo));
				at = upTo;
				continue;
			}
			OPEN.lastIndex = at;
			const open = OPEN.exec(held);
			if (open) {
				at += open[0].length;
				mode = "thinking";
				opened = true;
				continue;
			}
			CLOSE.lastIndex = at;
			const close = CLOSE.exec(held);
			if (close) {
				at += close[0].length;
				if (doubtful !== null) {
					piece.thought += doubtful;
					doubtful = nested > 0 ? "" : null;
					nested = Math.max(0, nested - 1);
				} else if (!opened) {
					strayClose = true;
					opened = true;
					piece.thought += piece.text;
					piece.void = visible;
					piece.text = "";
					visible = false;
				}
				continue;
			}
			FRAME.lastIndex = at;
			const frame = FRAME.exec(held);
			if (frame) {
				at += frame[0].length;
				continue;
			}
			if (!final && mayBecomeTag(held, at)) return hold(at);
			lineStart = false;
			give(char);
			at++;
		}
		held = "";
		return piece;
	}

	/** No further closing tag came: what was in doubt is the answer. */
	function settled(piece: Piece): Piece {
		const rest = doubtful ?? "";
		doubtful = null;
		return { ...piece, text: piece.text + (visible ? rest : rest.trimStart()) };
	}

	function waited(piece: Piece, final: boolean): Piece {
		if (waiting === null) return piece;
		if (piece.void || strayClose || opened) {
			const thought = waiting + piece.thought;
			waiting = null;
			return { text: piece.text, thought, void: false };
		}
		waiting += piece.text;
		if (!final) return { text: "", thought: piece.thought, void: false };
		const text = waiting;
		waiting = null;
		return { text, thought: piece.thought, void: false };
	}

	return {
		push(text) {
			// The common case: plain words, nothing held.
			if (held === "" && mode === "text" && waiting === null && doubtful === null && visible) {
				SPECIAL.lastIndex = 0;
				if (!SPECIAL.test(text)) {
					if (lineStart && !LINE_PREFIX.test(text)) lineStart = false;
					return { text, thought: "", void: false };
				}
			}
			held += text;
			return waited(run(false), false);
		},
		end: () => waited(settled(run(true)), true),
		get strayClose() {
			return strayClose;
		},
	};
}

/** From where text inside thinking must wait, because a closing tag may have begun there. */
function tailStart(text: string, from: number): number {
	const last = Math.max(text.lastIndexOf("<"), text.lastIndexOf("["), text.lastIndexOf("◁"));
	// "<|channel|>final<|message|>" is two tags in one.
	const first = text.lastIndexOf("<|channel|>");
	const start = first >= 0 && text.length - first < 40 ? first : last;
	return start >= from && text.length - start < 40 ? start : text.length;
}

function closesFence(line: string, fence: { mark: string; length: number }): boolean {
	const text = line.replace(/^[\s>]+/, "").trimEnd();
	return text.length >= fence.length && text === fence.mark.repeat(text.length);
}

/** Where the code span ends that began before `from`: after its closing run, "none" when its line ends first, "open" when that is not known yet. */
function spanEnd(text: string, from: number, length: number): number | "none" | "open" {
	for (let at = from; at < text.length; ) {
		const char = text[at];
		if (char === "\n") return "none";
		if (char !== "`") {
			at++;
			continue;
		}
		let end = at;
		while (text[end] === "`") end++;
		if (end - at === length) return end === text.length ? "open" : end;
		at = end;
	}
	return "open";
}

const BEGINNINGS = [
	"<think",
	"<thinking",
	"<thought",
	"<thoughts",
	"<reasoning",
	"<seed:think",
	"<mm:think",
	"<antthinking",
	"<ant_thinking",
	"<scratchpad",
	"<inner_monologue",
].flatMap((name) => [name, name.replace("<", "</")]);
const EXACT = ["[think]", "[/think]", "◁think▷", "◁/think▷"];

function mayBecomeTag(text: string, at: number): boolean {
	const rest = text.slice(at, at + TAG_LENGTH).toLowerCase();
	if (rest[0] !== "<") return EXACT.some((tag) => tag.startsWith(rest));
	if (rest.startsWith("<|"))
		return (
			rest.length < 40 &&
			/^<\|[a-z_/]*\|?>?(?:\s*[a-z]*\s*(?:<\|?[a-z]*\|?)?)?$/.test(rest) &&
			!/^<\|[a-z_/]+\|>\s*[a-z]+\s/.test(rest) &&
			harmony(rest)
		);
	const tight = rest.replace(/^<\s*(\/?)\s*/, "<$1");
	if (tight === "<" || tight === "</") return rest.length < 12;
	return (
		rest.length < TAG_LENGTH &&
		BEGINNINGS.some((name) => name.startsWith(tight) || (tight.startsWith(name) && /^(\s[^<>]*)?$/.test(tight.slice(name.length))))
	);
}

/** Only the markers we know may still grow. */
function harmony(rest: string): boolean {
	return [
		"<|begin_of_thought|>",
		"<|end_of_thought|>",
		"<|thought|>",
		"<|think|>",
		"<|thinking|>",
		"<|/think|>",
		"<|begin_of_solution|>",
		"<|end_of_solution|>",
		"<|channel|>",
		"<|channel>",
		"<|start|>",
	].some((mark) => mark.startsWith(rest) || (/^<\|(?:channel|start)/.test(mark) && rest.startsWith(mark)));
}
