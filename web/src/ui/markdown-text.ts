/** What happens to a model's text before it is parsed as Markdown. Pure. */

/** Code (fenced or inline), which nothing here may touch. */
const code = /(^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\2[`~]*[ \t]*$|(?![\s\S]))|(`+)[^`][\s\S]*?\3(?!`))/m;

/**
 * Brings every usual way to write math to `$$`: `\(…\)`, `\[…\]` and a single `$…$` that looks like math rather than money.
 * Prices ("$5 and $10") and everything inside code stay as they are.
 */
export function normalizeMath(text: string): string {
	if (!text.includes("$") && !text.includes("\\(") && !text.includes("\\[")) return text;
	return eachOutsideCode(text, (piece) =>
		piece
			.replace(/\\\[([\s\S]+?)\\\]/g, (_all, inner: string) => `\n$$\n${inner.trim()}\n$$\n`)
			.replace(/\\\(([\s\S]+?)\\\)/g, (_all, inner: string) => `$$${inner.trim()}$$`)
			.replace(/(?<![\\$\w])\$(?![\s$])([^$\n]{1,300}?)(?<![\s\\$])\$(?![\d$\w])/g, (all, inner: string) =>
				looksLikeMath(inner) ? `$$${inner}$$` : all,
			),
	);
}

function looksLikeMath(inner: string): boolean {
	return /[\\^_{}=<>≤≥+*/]/.test(inner) ? !/[\u3400-\u9fff]/.test(inner.replace(/\\text\{[^}]*\}/g, "")) : /^[A-Za-z]{1,2}'?$/.test(inner);
}

function eachOutsideCode(text: string, change: (piece: string) => string): string {
	let rest = text;
	let done = "";
	for (;;) {
		const found = code.exec(rest);
		if (!found) return done + change(rest);
		done += change(rest.slice(0, found.index)) + found[0];
		rest = rest.slice(found.index + found[0].length);
	}
}

/** Whether the text has math after `normalizeMath`. */
export function hasMath(text: string): boolean {
	return text.includes("$$") || /^```math/m.test(text);
}

/** Whether a code block names its language, so that colouring it is worth loading. */
export function hasColouredCode(text: string): boolean {
	return /^\s*(```+|~~~+)[ \t]*(?!math)[A-Za-z]/m.test(text);
}

export type LinkTarget =
	| { kind: "web"; href: string; host: string }
	| { kind: "mail"; href: string; host: string }
	| { kind: "own"; href: string }
	| { kind: "none" };

/** Where a link of the model's may go: web, mail and phone, with the host to be shown; or a place in this page; else nowhere. */
export function linkTarget(href: string | undefined, origin: string): LinkTarget {
	if (!href) return { kind: "none" };
	if (href.startsWith("#")) return { kind: "own", href };
	let url: URL;
	try {
		url = new URL(href, origin);
	} catch {
		return { kind: "none" };
	}
	if (url.protocol === "mailto:" || url.protocol === "tel:") return { kind: "mail", href: url.href, host: url.pathname };
	if (url.protocol !== "http:" && url.protocol !== "https:") return { kind: "none" };
	if (url.origin === origin)
		return /^\/api\/v1\/assets\/[0-9a-f]{64}$/.test(url.pathname) ? { kind: "own", href: url.pathname } : { kind: "none" };
	return { kind: "web", href: url.href, host: url.host };
}
