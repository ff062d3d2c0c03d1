/** The checks of the strictest OpenAI-compatible server, in one place. Answers the first thing that is wrong, or null. */

export interface Refusal {
	message: string;
	status?: number;
	code?: string;
	param?: string;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const KEYS = new Set([
	"model",
	"messages",
	"tools",
	"tool_choice",
	"parallel_tool_calls",
	"stream",
	"stream_options",
	"temperature",
	"top_p",
	"max_tokens",
	"max_completion_tokens",
	"response_format",
	"stop",
	"seed",
	"n",
	"user",
	"reasoning_effort",
	"frequency_penalty",
	"presence_penalty",
]);
const ROLES = ["system", "developer", "user", "assistant", "tool"];

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const wellFormed = (text: string) => (text as string & { isWellFormed(): boolean }).isWellFormed();

export function validateChat(body: unknown): Refusal | null {
	if (!isObject(body)) return { message: "We could not parse the JSON body of your request." };
	for (const key of Object.keys(body)) if (!KEYS.has(key)) return { message: `Unrecognized request argument supplied: ${key}`, param: key };
	if (typeof body.model !== "string" || body.model === "") return { message: "you must provide a model parameter", param: "model" };
	if (!Array.isArray(body.messages) || body.messages.length === 0)
		return { message: "Invalid 'messages': empty array.", param: "messages" };
	if ("stream_options" in body && body.stream !== true)
		return { message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param: "stream_options" };
	for (const key of ["max_tokens", "max_completion_tokens"]) {
		if (key in body && !(Number.isInteger(body[key]) && (body[key] as number) > 0))
			return { message: `Invalid '${key}': integer above 0 expected.`, param: key };
	}
	const lone = findLoneSurrogate(body, "");
	if (lone) return { message: `Invalid body: lone surrogate in ${lone}.` };
	return validateTools(body.tools) ?? validateMessages(body.messages);
}

function findLoneSurrogate(value: unknown, path: string): string | null {
	if (typeof value === "string") return wellFormed(value) ? null : path || "body";
	if (Array.isArray(value)) {
		for (const [index, item] of value.entries()) {
			const found = findLoneSurrogate(item, `${path}[${index}]`);
			if (found) return found;
		}
	} else if (isObject(value)) {
		for (const [key, item] of Object.entries(value)) {
			const found = wellFormed(key) ? findLoneSurrogate(item, path ? `${path}.${key}` : key) : `${path} (key)`;
			if (found) return found;
		}
	}
	return null;
}

function validateTools(tools: unknown): Refusal | null {
	if (tools === undefined) return null;
	if (!Array.isArray(tools) || tools.length === 0) return { message: "Invalid 'tools': empty array.", param: "tools" };
	if (tools.length > 128)
		return {
			message: `Invalid 'tools': array too long. Expected at most 128, got ${tools.length}.`,
			param: "tools",
			code: "array_above_max_length",
		};
	const names = new Set<string>();
	for (const [index, tool] of tools.entries()) {
		const param = `tools[${index}].function`;
		const fn = isObject(tool) && tool.type === "function" && isObject(tool.function) ? tool.function : null;
		if (!fn) return { message: `Missing ${param}.`, param };
		if (typeof fn.name !== "string" || !NAME.test(fn.name))
			return { message: `Invalid '${param}.name': does not match '^[a-zA-Z0-9_-]{1,64}$'.`, param };
		if (names.has(fn.name)) return { message: `Tool names must be unique: ${fn.name}.`, param };
		names.add(fn.name);
		if ("description" in fn && typeof fn.description !== "string") return { message: `Invalid '${param}.description'.`, param };
		const bad = badSchema(fn.parameters);
		if (bad)
			return {
				message: `Invalid schema for function '${fn.name}': ${bad}`,
				param: `${param}.parameters`,
				code: "invalid_function_parameters",
			};
	}
	return null;
}

function badSchema(schema: unknown): string | null {
	if (!isObject(schema)) return "schema must be an object.";
	if (schema.type !== "object") return `schema must have type 'object', got ${JSON.stringify(schema.type)}.`;
	if (!isObject(schema.properties)) return "object schema missing properties.";
	for (const key of ["anyOf", "oneOf", "allOf", "enum", "not"]) if (key in schema) return `'${key}' is not allowed at the top level.`;
	return JSON.stringify(schema).includes('"$ref":') ? "references are not supported." : null;
}

function validateMessages(messages: unknown[]): Refusal | null {
	const open = new Set<string>();
	const seen = new Set<string>();
	for (const [index, message] of messages.entries()) {
		const param = `messages[${index}]`;
		if (!isObject(message)) return { message: `Invalid '${param}'.`, param };
		const role = String(message.role);
		if (!ROLES.includes(role))
			return { message: `Invalid value: '${role}'. Supported values are: ${ROLES.join(", ")}.`, param: `${param}.role` };
		if (role !== "tool" && open.size > 0) {
			return {
				message: `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. Missing: ${[...open].join(", ")}`,
				param,
			};
		}
		if (role === "tool") {
			const id = message.tool_call_id;
			if (typeof id !== "string" || !open.delete(id)) {
				return {
					message: `Messages with role 'tool' must be a response to a preceding message with 'tool_calls' (${String(id)}).`,
					param: `${param}.role`,
				};
			}
		}
		const refusal = role === "assistant" ? assistant(message, param, open, seen) : content(message.content, param);
		if (refusal) return refusal;
	}
	return open.size > 0 ? { message: `Tool calls without an answer: ${[...open].join(", ")}`, param: "messages" } : null;
}

function assistant(message: Json, param: string, open: Set<string>, seen: Set<string>): Refusal | null {
	const calls = message.tool_calls;
	if (calls === undefined) return content(message.content, param);
	if (!Array.isArray(calls) || calls.length === 0) return { message: `Invalid '${param}.tool_calls': empty array.`, param };
	if (message.content !== null && message.content !== undefined) {
		const refusal = content(message.content, param);
		if (refusal) return refusal;
	}
	for (const call of calls) {
		if (!isObject(call) || call.type !== "function" || !isObject(call.function))
			return { message: `Invalid '${param}.tool_calls'.`, param };
		if (typeof call.id !== "string" || call.id === "" || call.id.length > 64)
			return { message: `Invalid '${param}.tool_calls[].id'.`, param };
		if (seen.has(call.id)) return { message: `Duplicate tool call id: ${call.id}.`, param };
		seen.add(call.id);
		open.add(call.id);
		if (typeof call.function.name !== "string" || !NAME.test(call.function.name))
			return { message: `Invalid '${param}.tool_calls[].function.name'.`, param };
		if (typeof call.function.arguments !== "string") return { message: `Invalid '${param}.tool_calls[].function.arguments'.`, param };
		try {
			JSON.parse(call.function.arguments);
		} catch {
			return { message: `Invalid '${param}.tool_calls[].function.arguments': not JSON.`, param };
		}
	}
	return null;
}

function content(value: unknown, param: string): Refusal | null {
	if (typeof value === "string")
		return value.trim() === "" ? { message: `Invalid '${param}.content': must not be empty.`, param: `${param}.content` } : null;
	if (!Array.isArray(value) || value.length === 0)
		return { message: `Invalid '${param}.content': text or a list of parts expected.`, param: `${param}.content` };
	for (const part of value) {
		if (!isObject(part)) return { message: `Invalid '${param}.content'.`, param };
		if (part.type === "text" && typeof part.text === "string" && part.text.trim() !== "") continue;
		if (
			part.type === "image_url" &&
			isObject(part.image_url) &&
			/^(data:image\/[a-z+.-]+;base64,[A-Za-z0-9+/]+=*$|https?:)/.test(String(part.image_url.url))
		)
			continue;
		return { message: `Invalid '${param}.content': bad part of type ${String(part.type)}.`, param };
	}
	return null;
}
