/** Keeps keys out of everything that is logged, stored or shown. */

/** "sk-…a1b2"; short keys show nothing of themselves. */
export function maskKey(key: string): string {
	if (key.length < 12) return "…";
	const head = /^[A-Za-z]{2,4}[-_]/.exec(key)?.[0] ?? "";
	return `${head}…${key.slice(-4)}`;
}

/** `text` without any of `secrets`, without bearer tokens, and not longer than `limit`. */
export function redact(text: string, secrets: string[], limit = 500): string {
	let clean = text;
	for (const secret of secrets) if (secret.length >= 4) clean = clean.replaceAll(secret, maskKey(secret));
	clean = clean.replace(/(bearer\s+)[\w.~+/=-]{8,}/gi, "$1…").replace(/\b(?:sk|pk|xai|gsk|AIza)[-_]?[\w*-]{12,}/g, "…");
	// A URL may carry credentials or a signed query.
	clean = clean.replace(/(https?:\/\/)[^\s/@]+@/g, "$1").replace(/(https?:\/\/[^\s?]+)\?\S+/g, "$1");
	const line = clean.replace(/\s+/g, " ").trim();
	return line.length > limit ? `${line.slice(0, limit)}…` : line;
}
