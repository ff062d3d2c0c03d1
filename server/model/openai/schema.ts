/** Makes any tool schema fit the strictest server: a plain object at the root, references resolved. Deterministic. */

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const DROPPED = new Set(["$schema", "$id", "$defs", "definitions", "$comment", "$anchor"]);
const MOST_DEPTH = 24;

export function fitSchema(schema: unknown): Json {
	const root = isObject(schema) ? schema : {};
	const resolved = resolve(root, root, [], 0);
	const flat: Json = isObject(resolved) ? mergeRoot(resolved) : {};
	const { type: _type, properties, required, ...others } = flat;
	for (const key of ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"]) delete others[key];
	const fitted = isObject(properties) ? properties : {};
	const names = Array.isArray(required) ? required.filter((name) => typeof name === "string" && name in fitted) : [];
	return { type: "object", properties: fitted, ...(names.length > 0 ? { required: names } : {}), ...others };
}

function resolve(value: unknown, root: Json, trail: string[], depth: number): unknown {
	if (Array.isArray(value)) return value.map((item) => resolve(item, root, trail, depth + 1));
	if (!isObject(value)) return typeof value === "string" ? wellFormed(value) : value;
	if (depth > MOST_DEPTH) return {};
	if (typeof value.$ref === "string") {
		const { $ref: reference, ...beside } = value;
		const target = trail.includes(reference as string) ? undefined : lookUp(root, reference as string);
		// A schema that holds itself, or points to nothing: anything goes there.
		if (!isObject(target)) return resolve(beside, root, trail, depth + 1);
		return resolve({ ...target, ...beside }, root, [...trail, reference as string], depth + 1);
	}
	const out: Json = {};
	for (const [key, item] of Object.entries(value)) {
		if (DROPPED.has(key)) continue;
		if (key === "properties" && isObject(item)) {
			// Here keys are names, not keywords.
			const named: Json = {};
			for (const [name, property] of Object.entries(item)) named[name] = resolve(property, root, trail, depth + 1);
			out.properties = named;
			continue;
		}
		out[key] = resolve(item, root, trail, depth + 1);
	}
	return out;
}

function lookUp(root: Json, reference: string): unknown {
	if (reference === "#") return root;
	if (!reference.startsWith("#/")) return undefined;
	let at: unknown = root;
	for (const part of reference.slice(2).split("/")) {
		const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
		at = isObject(at) ? at[name] : Array.isArray(at) ? at[Number(name)] : undefined;
	}
	return at;
}

/** Alternatives at the root become one object: all properties, required only what every alternative requires. */
function mergeRoot(schema: Json): Json {
	let properties: Json = isObject(schema.properties) ? { ...schema.properties } : {};
	let required = Array.isArray(schema.required) ? [...schema.required] : [];
	for (const part of list(schema.allOf)) {
		const merged = mergeRoot(part);
		properties = { ...properties, ...(merged.properties as Json) };
		required = [...new Set([...required, ...(merged.required as unknown[])])];
	}
	for (const key of ["anyOf", "oneOf"]) {
		const parts = list(schema[key]).map(mergeRoot);
		if (parts.length === 0) continue;
		for (const part of parts) {
			for (const [name, property] of Object.entries(part.properties as Json)) {
				const before = properties[name];
				properties[name] =
					before === undefined || JSON.stringify(before) === JSON.stringify(property) ? property : { anyOf: [before, property] };
			}
		}
		const common = ((parts[0] as Json).required as unknown[]).filter((name) =>
			parts.every((part) => (part.required as unknown[]).includes(name)),
		);
		required = [...new Set([...required, ...common])];
	}
	return { ...schema, properties, required };
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** `text` without lone surrogates. */
export function wellFormed(text: string): string {
	return (text as string & { toWellFormed(): string }).toWellFormed();
}
