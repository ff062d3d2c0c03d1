/** What was made of long texts, kept while they come again: a prompt's beginning is the same in every request. */

/** Shorter texts are made again faster than they are found. */
const LONG = 400;
/** Characters of all kept texts together. */
const MOST_CHARS = 4_000_000;

/** `make`, a pure function of a text, done once for a long text that comes again soon. What was not asked for longest is dropped first. */
export function recently<T>(make: (text: string) => T, mostChars = MOST_CHARS): (text: string) => T {
	const kept = new Map<string, T>();
	let chars = 0;
	return (text) => {
		if (text.length < LONG) return make(text);
		let made = kept.get(text);
		if (made === undefined) {
			made = make(text);
			chars += text.length;
		} else kept.delete(text);
		kept.set(text, made);
		while (chars > mostChars && kept.size > 1) {
			const oldest = kept.keys().next().value as string;
			kept.delete(oldest);
			chars -= oldest.length;
		}
		return made;
	};
}
