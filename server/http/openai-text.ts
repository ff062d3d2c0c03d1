/**
 * Turns a turn's deltas into text that an OpenAI client may already have read. Such a stream cannot take anything back, so:
 * - the beginning of each step is held for a moment: a short remark before a tool call, or an attempt that is begun again at once,
 *   is then never sent;
 * - after a restart the new text is compared with what was sent and goes on where it agrees; if it does not agree, the stream
 *   must end with an error;
 * - a remark that was already sent stays, and what follows begins a new paragraph.
 * In the end everything of the reply that was not sent yet follows, so the last paragraph is the turn's reply.
 */

export interface AnswerText {
	stepStarted(): void;
	delta(text: string): void;
	restart(): void;
	/** Sends what is missing of the reply. False: what was sent is void and contradicts the reply. */
	finish(reply: string): boolean;
	/** Nothing is sent after this. */
	close(): void;
}

export interface AnswerTextOptions {
	emit(text: string): void;
	holdMs: number;
	setTimer(callback: () => void, ms: number): () => void;
}

export function createAnswerText({ emit, holdMs, setTimer }: AnswerTextOptions): AnswerText {
	/** Something of an earlier step was sent. */
	let earlier = false;
	/** What was sent of this step, and what is held back of it. */
	let sent = "";
	let held = "";
	/** Since a restart: what the new attempt has said so far; null when it agrees or nothing was void. */
	let again: string | null = null;
	/** Text was sent that no later text continues. */
	let broken = false;
	let cancel: (() => void) | null = null;
	let closed = false;

	function stopTimer(): void {
		cancel?.();
		cancel = null;
	}

	function out(text: string): void {
		if (closed || text === "") return;
		emit(sent === "" && earlier ? `\n\n${text}` : text);
		sent += text;
	}

	function flush(): void {
		cancel = null;
		const text = held;
		held = "";
		out(text);
	}

	return {
		stepStarted() {
			stopTimer();
			if (again !== null && sent !== "") broken = true;
			again = null;
			held = "";
			if (sent !== "") earlier = true;
			sent = "";
		},
		delta(text) {
			if (again !== null) {
				again += text;
				if (again.startsWith(sent)) {
					const rest = again.slice(sent.length);
					again = null;
					out(rest);
				}
			} else if (sent !== "" || holdMs <= 0) out(text);
			else {
				held += text;
				cancel ??= setTimer(flush, holdMs);
			}
		},
		restart() {
			stopTimer();
			held = "";
			again = sent === "" ? null : "";
		},
		finish(reply) {
			stopTimer();
			held = "";
			if (broken) return false;
			// The stored reply may be trimmed where the stream was not.
			const said = sent.trim();
			const body = reply.trim();
			if (said === body && body !== "") return true;
			const lead = sent.trimStart();
			if (sent !== "" && body.startsWith(said)) {
				out(body.startsWith(lead) ? body.slice(lead.length) : body.slice(said.length).trimStart());
				return true;
			}
			if (again !== null) return false;
			if (sent !== "") earlier = true;
			sent = "";
			out(body);
			return true;
		},
		close() {
			closed = true;
			stopTimer();
		},
	};
}
