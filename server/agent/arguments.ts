/** Arguments of a tool call: parsed, checked against the tool's schema, and explained to the model when they do not fit. */
import type { ToolCall, ToolSchema } from "../model/model.ts";
import { oneLine } from "./text.ts";

type Schema = Record<string, unknown>;

export type Checked = { ok: true; args: Record<string, unknown> } | { ok: false; problem: string };

/** `read_file(path: string, offset?: integer)`: what a model needs to call it right. */
export function signature(tool: ToolSchema): string {
	const properties = (tool.parameters.properties ?? {}) as Record<string, Schema>;
	const required = new Set(Array.isArray(tool.parameters.required) ? (tool.parameters.required as string[]) : []);
	const parts = Object.entries(properties).map(([name, schema]) => `${name}${required.has(name) ? "" : "?"}: ${typeName(schema)}`);
	return `${tool.name}(${parts.join(", ")})`;
}

function typeName(schema: Schema): string {
	if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
	const options = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined;
	if (Array.isArray(options)) return options.map(typeName).join(" | ");
	if (schema.type === "array") return `[${typeName((schema.items ?? {}) as Schema)}]`;
	if (schema.type === "object" && schema.properties) {
		const required = new Set(Array.isArray(schema.required) ? (schema.required as string[]) : []);
		return `{${Object.entries(schema.properties as Record<string, Schema>)
			.map(([name, inner]) => `${name}${required.has(name) ? "" : "?"}: ${typeName(inner)}`)
			.join(", ")}}`;
	}
	return Array.isArray(schema.type) ? schema.type.join(" | ") : typeof schema.type === "string" ? schema.type : "any";
}

/** Parses and checks. Numbers and booleans written as strings are taken as meant, nulls of optional arguments are left out; nothing else is mended. */
export function checkArguments(call: ToolCall, tool: ToolSchema): Checked {
	if (call.truncated)
		return {
			ok: false,
			problem:
				"the arguments were cut off by the output limit, so the call was not run. Send them again, whole and shorter (write long content in several calls)",
		};
	let value: unknown;
	try {
		value = call.arguments.trim() === "" ? {} : JSON.parse(call.arguments);
	} catch (error) {
		return { ok: false, problem: `the arguments are not valid JSON (${oneLine((error as Error).message, 120)})` };
	}
	if (value === null || typeof value !== "object" || Array.isArray(value))
		return { ok: false, problem: "the arguments must be one JSON object" };
	const problems: string[] = [];
	const args = checkObject(value as Record<string, unknown>, tool.parameters, "", problems);
	return problems.length > 0 ? { ok: false, problem: problems.slice(0, 5).join("; ") } : { ok: true, args };
}

function checkObject(value: Record<string, unknown>, schema: Schema, path: string, problems: string[]): Record<string, unknown> {
	const properties = schema.properties as Record<string, Schema> | undefined;
	const required = Array.isArray(schema.required) ? (schema.required as string[]) : [];
	const open =
		!properties ||
		schema.additionalProperties === true ||
		typeof schema.additionalProperties === "object" ||
		schema.patternProperties !== undefined;
	const out: Record<string, unknown> = {};
	for (const [name, item] of Object.entries(value)) {
		const inner = properties && Object.hasOwn(properties, name) ? properties[name] : undefined;
		if (!inner) {
			if (open) define(out, name, item);
			else problems.push(`unknown argument ${path}${name}`);
		} else if (item === null && !required.includes(name) && !allowsNull(inner)) continue;
		else define(out, name, checkValue(item, inner, `${path}${name}`, problems));
	}
	for (const name of required) if (!Object.hasOwn(value, name)) problems.push(`missing argument ${path}${name}`);
	return out;
}

/** Plain assignment would let an argument named `__proto__` change the object. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
	Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
}

function allowsNull(schema: Schema): boolean {
	return (
		schema.type === "null" ||
		(Array.isArray(schema.type) && schema.type.includes("null")) ||
		((schema.anyOf ?? schema.oneOf) as Schema[] | undefined)?.some(allowsNull) === true
	);
}

function checkValue(value: unknown, schema: Schema, path: string, problems: string[]): unknown {
	const options = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined;
	if (Array.isArray(options)) {
		for (const option of options) {
			const inner: string[] = [];
			const out = checkValue(value, option, path, inner);
			if (inner.length === 0) return out;
		}
		problems.push(`${path} must be ${typeName(schema)}`);
		return value;
	}
	const types = Array.isArray(schema.type) ? (schema.type as string[]) : typeof schema.type === "string" ? [schema.type] : [];
	const fitted = types.length === 0 ? { value } : fitType(value, types);
	if (!fitted) {
		problems.push(`${path} must be ${typeName(schema)}`);
		return value;
	}
	const out = fitted.value;
	if (Array.isArray(schema.enum) && !schema.enum.includes(out)) problems.push(`${path} must be ${typeName(schema)}`);
	if (typeof out === "number") {
		if (typeof schema.minimum === "number" && out < schema.minimum) problems.push(`${path} must be at least ${schema.minimum}`);
		if (typeof schema.maximum === "number" && out > schema.maximum) problems.push(`${path} must be at most ${schema.maximum}`);
	}
	if (Array.isArray(out)) {
		if (typeof schema.maxItems === "number" && out.length > schema.maxItems)
			problems.push(`${path} may have at most ${schema.maxItems} items`);
		if (schema.items && !Array.isArray(schema.items))
			return out.map((item, index) => checkValue(item, schema.items as Schema, `${path}[${index}]`, problems));
	}
	if (out !== null && typeof out === "object" && !Array.isArray(out))
		return checkObject(out as Record<string, unknown>, schema, `${path}.`, problems);
	return out;
}

function fitType(value: unknown, types: string[]): { value: unknown } | null {
	for (const type of types) {
		if (type === "string" && typeof value === "string") return { value };
		if (type === "number" && typeof value === "number" && Number.isFinite(value)) return { value };
		if (type === "integer" && Number.isSafeInteger(value)) return { value };
		if (type === "boolean" && typeof value === "boolean") return { value };
		if (type === "array" && Array.isArray(value)) return { value };
		if (type === "object" && value !== null && typeof value === "object" && !Array.isArray(value)) return { value };
		if (type === "null" && value === null) return { value };
	}
	if (typeof value !== "string" || types.includes("string")) return null;
	const text = value.trim();
	if (types.includes("integer") && /^-?\d{1,15}$/.test(text)) return { value: Number(text) };
	if (types.includes("number") && /^-?\d+(\.\d+)?$/.test(text)) return { value: Number(text) };
	if (types.includes("boolean") && (text === "true" || text === "false")) return { value: text === "true" };
	return null;
}

/** The arguments with keys in order, so that two writings of one call are equal. Text that is no JSON stands for itself. */
export function canonicalArguments(json: string): string {
	try {
		return JSON.stringify(sortKeys(JSON.parse(json.trim() === "" ? "{}" : json)));
	} catch {
		return json.trim();
	}
}

function sortKeys(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(sortKeys);
	if (value === null || typeof value !== "object") return value;
	return Object.fromEntries(
		Object.entries(value)
			.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
			.map(([key, inner]) => [key, sortKeys(inner)]),
	);
}
