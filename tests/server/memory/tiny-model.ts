/**
 * A whole embedding model of about 2 kB, written byte by byte: token id -> row of a table. Words of one meaning share a row's
 * direction, in Chinese and English, so what it finds no comparison of letters finds.
 */

import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

export const dimension = 8;

/** Each group is one meaning. */
const meanings = [
	["boat", "ship", "船"],
	["dog", "puppy", "狗"],
	["doctor", "physician", "医"],
	["rain", "drizzle", "雨"],
	["money", "salary", "钱"],
];
const special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
const words = [...special, ...meanings.flat()];

function table(): Float32Array {
	const rows = new Float32Array(words.length * dimension);
	for (const [index, word] of words.entries()) {
		const meaning = meanings.findIndex((group) => group.includes(word));
		// Padding has a direction of its own: a batch that did not mask it would be seen.
		if (word === "[PAD]") rows[index * dimension + 7] = 5;
		if (word === "[UNK]") rows[index * dimension + 6] = 0.05;
		if (meaning >= 0) rows[index * dimension + meaning] = 1;
	}
	return rows;
}

// Protocol buffers: a number, and bytes with their length.
function varint(value: number): number[] {
	const bytes: number[] = [];
	for (let rest = value; ; rest = Math.floor(rest / 128)) {
		if (rest < 128) return [...bytes, rest];
		bytes.push((rest % 128) | 128);
	}
}
const int = (field: number, value: number): number[] => [...varint(field * 8), ...varint(value)];
const bytes = (field: number, value: Iterable<number>): number[] => {
	const all = [...value];
	return [...varint(field * 8 + 2), ...varint(all.length), ...all];
};
const text = (field: number, value: string): number[] => bytes(field, Buffer.from(value));

const float32 = 1;
const int64 = 7;
const named = (name: string) => text(2, name);
const sized = (size: number) => int(1, size);

/** ValueInfoProto of a tensor. */
const tensor = (name: string, type: number, shape: number[][]): number[] => [
	...text(1, name),
	...bytes(
		2,
		bytes(1, [
			...int(1, type),
			...bytes(
				2,
				shape.flatMap((dim) => bytes(1, dim)),
			),
		]),
	),
];

function onnx(): Uint8Array {
	const tokens = [named("batch"), named("sequence")];
	const rows = table();
	const graph = [
		...bytes(1, [...text(1, "table"), ...text(1, "input_ids"), ...text(2, "last_hidden_state"), ...text(4, "Gather")]),
		...text(2, "tiny"),
		...bytes(5, [
			...int(1, words.length),
			...int(1, dimension),
			...int(2, float32),
			...text(8, "table"),
			...bytes(9, new Uint8Array(rows.buffer, rows.byteOffset, rows.byteLength)),
		]),
		...bytes(11, tensor("input_ids", int64, tokens)),
		...bytes(11, tensor("attention_mask", int64, tokens)),
		...bytes(12, tensor("last_hidden_state", float32, [...tokens, sized(dimension)])),
	];
	return Uint8Array.from([...int(1, 8), ...bytes(7, graph), ...bytes(8, [...text(1, ""), ...int(2, 13)])]);
}

const tokenizer = {
	version: "1.0",
	truncation: null,
	padding: null,
	added_tokens: special.map((content, id) => ({
		id,
		content,
		single_word: false,
		lstrip: false,
		rstrip: false,
		normalized: false,
		special: true,
	})),
	normalizer: { type: "BertNormalizer", clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
	pre_tokenizer: { type: "BertPreTokenizer" },
	post_processor: {
		type: "TemplateProcessing",
		single: [
			{ SpecialToken: { id: "[CLS]", type_id: 0 } },
			{ Sequence: { id: "A", type_id: 0 } },
			{ SpecialToken: { id: "[SEP]", type_id: 0 } },
		],
		pair: [],
		special_tokens: {
			"[CLS]": { id: "[CLS]", ids: [2], tokens: ["[CLS]"] },
			"[SEP]": { id: "[SEP]", ids: [3], tokens: ["[SEP]"] },
		},
	},
	decoder: null,
	model: { type: "WordLevel", vocab: Object.fromEntries(words.map((word, id) => [word, id])), unk_token: "[UNK]" },
};

export async function writeTinyModel(directory: string): Promise<void> {
	await mkdir(join(directory, "onnx"), { recursive: true });
	await writeFile(join(directory, "onnx", "model.onnx"), onnx());
	await writeFile(join(directory, "config.json"), JSON.stringify({ model_type: "bert", hidden_size: dimension, vocab_size: words.length }));
	await writeFile(join(directory, "tokenizer.json"), JSON.stringify(tokenizer));
	await writeFile(
		join(directory, "tokenizer_config.json"),
		JSON.stringify({
			tokenizer_class: "PreTrainedTokenizerFast",
			model_max_length: 128,
			pad_token: "[PAD]",
			unk_token: "[UNK]",
			cls_token: "[CLS]",
			sep_token: "[SEP]",
		}),
	);
}

/** Where the real package is, for tests that need it; null with a note where it is not. */
export function transformersDir(): string | null {
	const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
	const dir = process.env.OPENLANI_TRANSFORMERS_DIR || join(cache, "openlani", "transformers");
	if (existsSync(join(dir, "node_modules", "@huggingface", "transformers", "package.json"))) return dir;
	console.warn(
		`Skipped: tests of real local embeddings. They need the package once, outside the clone:\n  ONNXRUNTIME_NODE_INSTALL_CUDA=skip npm i --no-save --prefix "${dir}" @huggingface/transformers@4.3.2`,
	);
	return null;
}

/** A package of the real one's name and shape in `dir/node_modules`, for what has nothing to do with vectors: two numbers for each text. */
export async function standIn(dir: string): Promise<void> {
	const place = join(dir, "node_modules", "@huggingface", "transformers");
	await mkdir(place, { recursive: true });
	await writeFile(
		join(place, "index.js"),
		`const env = { allowRemoteModels: true, localModelPath: "" };
exports.env = env;
exports.pipeline = async (task, model, { dtype }) => {
	const config = JSON.parse(require("node:fs").readFileSync(env.localModelPath + model + "/config.json", "utf8"));
	if (config.broken) throw new Error("these weights are of no use");
	return async (texts, { pooling, normalize }) => {
		if (texts[0] === "wait") await new Promise((resolve) => setTimeout(resolve, 60_000));
		if (texts[0] === "fail") throw new Error("a text it cannot take");
		const told = { remote: env.allowRemoteModels, path: env.localModelPath, model, dtype, normalize, pooling };
		return { tolist: () => texts.map((text) => (text === "tell" ? [...Buffer.from(JSON.stringify(told))] : [text.length, 1])) };
	};
};
`,
	);
	await writeFile(join(place, "package.json"), '{"name":"@huggingface/transformers","version":"0.0.0","main":"index.js"}');
}
