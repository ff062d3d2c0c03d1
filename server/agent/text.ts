/** Text as it may be stored and sent: well-formed Unicode, cut on characters. */

const HIGH_SURROGATE = /[\uD800-\uDBFF]$/;

/** Replaces lone surrogates by U+FFFD. */
export function wellFormed(text: string): string {
	const native = text as unknown as { isWellFormed(): boolean; toWellFormed(): string };
	return native.isWellFormed() ? text : native.toWellFormed();
}

/** The first `max` UTF-16 units at most, never ending inside a surrogate pair. */
export function cutHead(text: string, max: number): string {
	if (text.length <= max) return text;
	const head = text.slice(0, Math.max(0, max));
	return HIGH_SURROGATE.test(head) ? head.slice(0, -1) : head;
}

/** The last `max` UTF-16 units at most, never beginning inside a surrogate pair. */
export function cutTail(text: string, max: number): string {
	if (max <= 0) return "";
	if (text.length <= max) return text;
	const tail = text.slice(-max);
	return /^[\uDC00-\uDFFF]/.test(tail) ? tail.slice(1) : tail;
}

/** One line of at most `max` characters, for digests. */
export function oneLine(text: string, max: number): string {
	const line = text
		.slice(0, max * 4)
		.replace(/\s+/g, " ")
		.trim();
	return line.length <= max && text.length <= max * 4 ? line : `${cutHead(line, Math.max(0, max - 1))}…`;
}

/** Nothing that a reader would see: spaces, zero-width and control characters only. */
export function isBlank(text: string): boolean {
	return !/[^\s\p{Cc}\p{Cf}\u115F\u1160\u3164\uFFA0]/u.test(text);
}
