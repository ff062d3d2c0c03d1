/** `${VAR}` in the strings of config.yaml; `$${` stands for a plain `${`. */
import { isPlain, type Plain } from "./defaults.ts";

export type Path = (string | number)[];

export interface Unset {
	path: Path;
	variable: string;
}

const pattern = /\$?\$\{([^}]*)\}/g;

export function hasVariable(text: string): boolean {
	return [...text.matchAll(pattern)].some(([whole]) => !whole.startsWith("$$"));
}

/**
 * A copy of `value` with every variable put in. A string whose variable is not set is named in `unset` and left out: as a
 * key it is missing (so its default holds), in a list it is gone.
 */
export function expandVariables(value: unknown, lookup: (name: string) => string | undefined, unset: Unset[], path: Path = []): unknown {
	if (typeof value === "string") return expandText(value, lookup, unset, path);
	if (Array.isArray(value))
		return value.map((child, index) => expandVariables(child, lookup, unset, [...path, index])).filter((child) => child !== undefined);
	if (!isPlain(value)) return value;
	const result: Plain = {};
	for (const [key, child] of Object.entries(value)) {
		const expanded = expandVariables(child, lookup, unset, [...path, key]);
		if (expanded !== undefined) result[key] = expanded;
	}
	return result;
}

function expandText(text: string, lookup: (name: string) => string | undefined, unset: Unset[], path: Path): string | undefined {
	if (!text.includes("${")) return text;
	let missing = false;
	const result = text.replace(pattern, (whole: string, inner: string) => {
		if (whole.startsWith("$$")) return whole.slice(1);
		const variable = inner.trim();
		const value = lookup(variable);
		if (value !== undefined && value !== "") return value;
		missing = true;
		unset.push({ path, variable });
		return "";
	});
	return missing ? undefined : result;
}
