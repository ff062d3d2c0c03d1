/** The one-time code out of a set-up link, or the bare code; null when there is none. */
export function setupCodeOf(text: string): string | null {
	const found = /#setup=([^&\s]+)/.exec(text);
	if (found?.[1]) return decodeURIComponent(found[1]);
	const bare = text.trim();
	return /^[\w-]{6,200}$/.test(bare) ? bare : null;
}
