/**
 * A body as text to be read: JSON set out over lines, but long texts in it stand on lines of their own instead of one line full
 * of `\n`. For eyes, not for machines; copying gives the exact JSON.
 */
export function prettyBody(value: unknown): string {
	return lines(value, "").join("\n");
}

function lines(value: unknown, indent: string): string[] {
	if (typeof value === "string") return value.includes("\n") ? block(value, indent) : [JSON.stringify(value)];
	if (typeof value !== "object" || value === null) return [JSON.stringify(value) ?? "null"];
	const entries = Array.isArray(value) ? value.map((item) => ["", item] as const) : Object.entries(value);
	const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
	if (entries.length === 0) return [open + close];
	const flat = JSON.stringify(value);
	if (flat.length <= 80 && !flat.includes("\\n")) return [flat];
	const inner = `${indent}  `;
	const body = entries.flatMap(([key, item], index) => {
		const [first = "", ...rest] = lines(item, inner);
		const written = [`${inner}${key === "" && Array.isArray(value) ? "" : `${JSON.stringify(key)}: `}${first}`, ...rest];
		if (index < entries.length - 1) written.push(`${written.pop()},`);
		return written;
	});
	return [open, ...body, `${indent}${close}`];
}

function block(text: string, indent: string): string[] {
	return ['"""', ...text.split("\n").map((line) => `${indent}  ${line}`), `${indent}  """`];
}
