/** Turns what the schema refused into sentences with the key, the line and the nearest valid name. */
import { isMap, isScalar, isSeq, type LineCounter, type Node } from "yaml";
import type { z } from "zod";
import type { ConfigProblem } from "./environment.ts";
import type { Path } from "./expand.ts";
import { nearest } from "./nearest.ts";

interface SchemaNode {
	_zod: {
		def: {
			type: string;
			shape?: Record<string, SchemaNode>;
			element?: SchemaNode;
			valueType?: SchemaNode;
			innerType?: SchemaNode;
			in?: SchemaNode;
			out?: SchemaNode;
		};
	};
}

/** Dotted as people write it: `channels.telegram[0].token`. */
export function keyOf(path: Path): string {
	return path.reduce<string>(
		(key, part) => (typeof part === "number" ? `${key}[${part}]` : key === "" ? String(part) : `${key}.${part}`),
		"",
	);
}

/** Line of the deepest part of `path` that stands in the file, from 1; null when none does. */
export function lineOf(root: unknown, lines: LineCounter, path: Path): number | null {
	let node = root as Node | null;
	let offset: number | null = null;
	for (const part of path) {
		if (isMap(node)) {
			const pair = node.items.find((item) => String(isScalar(item.key) ? item.key.value : item.key) === String(part));
			if (!pair) break;
			const keyNode = pair.key as Node | null;
			offset = keyNode?.range?.[0] ?? offset;
			node = pair.value as Node | null;
		} else if (isSeq(node) && typeof part === "number") {
			const child = node.items[part] as Node | undefined;
			if (!child) break;
			offset = child.range?.[0] ?? offset;
			node = child;
		} else break;
	}
	return offset === null ? null : lines.linePos(offset).line;
}

/** The keys that may stand at `path`, as far as the schema fixes them. */
export function keysAt(schema: unknown, path: Path): string[] {
	let node = unwrap(schema as SchemaNode | undefined);
	for (const part of path) {
		const def = node?._zod.def;
		node = unwrap(def?.shape?.[String(part)] ?? def?.element ?? def?.valueType);
	}
	return Object.keys(node?._zod.def.shape ?? {});
}

function unwrap(schema: SchemaNode | undefined): SchemaNode | undefined {
	let node = schema;
	while (node) {
		const def = node._zod.def;
		const inner: SchemaNode | undefined =
			def.innerType ?? (def.type === "pipe" ? (def.out?._zod.def.type === "transform" ? def.in : def.out) : undefined);
		if (!inner) return node;
		node = inner;
	}
	return node;
}

export function problemsOf(
	issues: readonly z.core.$ZodIssue[],
	section: string,
	input: unknown,
	schema: unknown,
	lineAt: (path: Path) => number | null,
): ConfigProblem[] {
	return issues.flatMap((issue) => {
		const inner = issue.path.map((part) => (typeof part === "symbol" ? String(part) : part)) as Path;
		const path: Path = [section, ...inner];
		if (issue.code === "unrecognized_keys") {
			const known = keysAt(schema, inner);
			return issue.keys.map((key) => {
				const meant = nearest(key, known);
				const hint = meant ? `; did you mean "${meant}"?` : known.length > 0 ? `; known here: ${known.join(", ")}` : "";
				return { key: keyOf([...path, key]), line: lineAt([...path, key]), message: `unknown key "${key}"${hint}` };
			});
		}
		return [{ key: keyOf(path), line: lineAt(path), message: sentence(issue, valueAt(input, inner)) }];
	});
}

function valueAt(input: unknown, path: Path): unknown {
	return path.reduce<unknown>((value, part) => (value as Record<string | number, unknown> | null | undefined)?.[part], input);
}

function sentence(issue: z.core.$ZodIssue, value: unknown): string {
	switch (issue.code) {
		case "invalid_type":
			if (value === undefined) return "is missing";
			return `must be ${kindNames[issue.expected] ?? issue.expected}, not ${describe(value)}`;
		case "invalid_value": {
			const allowed = issue.values.map(String);
			const meant = typeof value === "string" ? nearest(value, allowed) : null;
			if (value === undefined) return `is missing; one of ${allowed.join(", ")}`;
			return `must be one of ${allowed.join(", ")}, not ${describe(value)}${meant ? `; did you mean "${meant}"?` : ""}`;
		}
		case "too_small":
			return issue.origin === "string" ? "must not be empty" : `must be at least ${issue.minimum}, not ${describe(value)}`;
		case "too_big":
			return `must be at most ${issue.maximum}, not ${describe(value)}`;
		case "invalid_union":
			return "must be null, {conversation: ID} or {channel: ID, to: ACCOUNT}";
		case "invalid_key":
			return "must be a short name of letters, digits, dot, dash or underscore";
		default:
			return issue.message;
	}
}

const kindNames: Record<string, string> = {
	number: "a number",
	int: "a whole number",
	string: "text",
	boolean: "true or false",
	object: "a section of keys",
	record: "a section of keys",
	array: "a list",
};

/** Says what stands there without repeating a text that may be a secret. */
function describe(value: unknown): string {
	if (value === null) return "empty";
	if (Array.isArray(value)) return "a list";
	if (typeof value === "object") return "a section of keys";
	if (typeof value === "string") return value.length > 24 ? "this text" : `"${value}"`;
	return String(value);
}
