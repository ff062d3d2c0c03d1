/** Puts changes into config.yaml's document so that comments, order and everything untouched stay as they are. */
import { type Document, isCollection, isMap, isScalar, isSeq, type Node, type Pair, visit, type YAMLMap, type YAMLSeq } from "yaml";
import { entryDefaults, isPlain, layOver, matchesPath, type Plain, records } from "./defaults.ts";
import type { Path } from "./expand.ts";

/**
 * Writes what differs between `before` and `after` (both as shown, secrets restored) into the document; true when something did.
 * A key missing from `after` is removed only where people choose the keys; elsewhere it stays as it is.
 */
export function applyChanges(document: Document, before: Plain, after: Plain): boolean {
	const changed = changedPaths(before, after);
	if (changed.length === 0) return false;
	if (document.contents === null || !isMap(document.contents))
		document.contents = document.createNode({}) as unknown as typeof document.contents;
	applyMap(document, document.contents as unknown as YAMLMap, before, after, []);
	settleHeartbeat(document, changed, before.heartbeat, after.heartbeat);
	return true;
}

/** Dotted paths of the settings that differ; a list counts as one setting. */
export function changedPaths(before: unknown, after: unknown, path: Path = []): string[] {
	if (isPlain(before) && isPlain(after)) {
		const isRecord = records.some((pattern) => matchesPath(pattern, path));
		const keys = new Set([...Object.keys(after), ...(isRecord ? Object.keys(before) : [])]);
		return [...keys].flatMap((key) => changedPaths(before[key], after[key], [...path, key]));
	}
	return sameValue(before, after) ? [] : [path.join(".")];
}

export function sameValue(a: unknown, b: unknown): boolean {
	if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((value, index) => sameValue(value, b[index]));
	if (isPlain(a) && isPlain(b)) return Object.keys({ ...a, ...b }).every((key) => sameValue(a[key], b[key]));
	return Object.is(a, b);
}

function applyMap(document: Document, map: YAMLMap, before: Plain, after: Plain, path: Path): void {
	const isRecord = records.some((pattern) => matchesPath(pattern, path));
	for (const key of Object.keys(after)) applyValue(document, map, key, before[key], after[key], [...path, key]);
	if (isRecord) for (const key of Object.keys(before)) if (!(key in after)) map.delete(pairOf(map, key)?.key ?? key);
}

function applyValue(document: Document, map: YAMLMap, key: string, before: unknown, after: unknown, path: Path): void {
	if (after === undefined || sameValue(before, after)) return;
	const pair = pairOf(map, key);
	if (isPlain(before) && isPlain(after)) {
		let child = pair?.value;
		if (!isMap(child)) {
			child = document.createNode({}) as YAMLMap;
			setIn(map, pair, key, child as Node);
		}
		applyMap(document, child as YAMLMap, before, after, path);
		return;
	}
	if (
		Array.isArray(before) &&
		Array.isArray(after) &&
		isSeq(pair?.value) &&
		pair.value.items.length === before.length &&
		after.every((entry) => isPlain(entry))
	) {
		applyList(document, pair.value, before, after, path);
		return;
	}
	setIn(map, pair, key, nodeOf(document, after, path), pair?.value);
}

/** Entries are known by their id: those that stay keep their node, with its comments. */
function applyList(document: Document, list: YAMLSeq, before: unknown[], after: unknown[], path: Path): void {
	const nodes = [...list.items];
	const taken = new Set<number>();
	list.items = after.map((entry, index) => {
		const id = isPlain(entry) ? entry.id : undefined;
		let at = before.findIndex((old, oldIndex) => !taken.has(oldIndex) && isPlain(old) && old.id === id);
		// A new id: an entry that was renamed keeps the node of one whose id is gone.
		const gone = (old: unknown, oldIndex: number) =>
			!taken.has(oldIndex) && !after.some((other) => isPlain(other) && other.id === (old as Plain | undefined)?.id);
		if (at < 0) at = index < before.length && gone(before[index], index) ? index : before.findIndex(gone);
		const node = nodes[at];
		const old = before[at];
		if (at < 0 || !isMap(node) || !isPlain(old) || !isPlain(entry)) return nodeOf(document, entry, [...path, index]);
		taken.add(at);
		const entryPath = [...path, index];
		applyMap(document, node, old, entry, entryPath);
		for (const key of Object.keys(old)) if (!(key in entry)) node.delete(pairOf(node, key)?.key ?? key);
		return node;
	});
}

/** A node for a new value; of a new entry only what differs from its defaults is written. */
function nodeOf(document: Document, value: unknown, path: Path): Node {
	const node = document.createNode(withoutDefaults(value, path)) as Node;
	visit(node, {
		Seq: (_key, seq) => {
			if (seq.items.every((item) => isScalar(item))) seq.flow = true;
		},
	});
	return node;
}

function withoutDefaults(value: unknown, path: Path): unknown {
	if (Array.isArray(value)) return value.map((child, index) => withoutDefaults(child, [...path, index]));
	if (!isPlain(value)) return value;
	let under: unknown = {};
	for (const [pattern, entry] of Object.entries(entryDefaults)) if (matchesPath(pattern, path)) under = layOver(under, entry);
	return strip(value, under as Plain, path);
}

function strip(value: Plain, under: Plain, path: Path): Plain {
	const result: Plain = {};
	for (const [key, child] of Object.entries(value)) {
		const base = under[key];
		if (key in under && sameValue(child, base)) continue;
		result[key] = isPlain(child) && isPlain(base) ? strip(child, base, [...path, key]) : withoutDefaults(child, [...path, key]);
	}
	return result;
}

function pairOf(map: YAMLMap, key: string): Pair | undefined {
	return map.items.find((item) => String(isScalar(item.key) ? item.key.value : item.key) === key);
}

function setIn(map: YAMLMap, pair: Pair | undefined, key: string, node: Node, old?: unknown): void {
	if (!pair) {
		map.set(key, node);
		return;
	}
	if (isScalar(old) || isCollection(old)) {
		node.comment = old.comment;
		node.commentBefore = old.commentBefore;
	}
	pair.value = node;
}

/** "off" has several spellings that hide in one key: after a change both keys are written out. */
function settleHeartbeat(document: Document, changed: string[], before: unknown, after: unknown): void {
	if (!isPlain(before) || !isPlain(after) || !changed.some((key) => key.startsWith("heartbeat."))) return;
	const written = document.getIn(["heartbeat"]);
	if (!isMap(written)) return;
	const section: Plain = { ...before, ...after };
	if (section.enabled === false || written.has("enabled")) written.set("enabled", section.enabled);
	if (written.has("every")) written.set("every", section.every);
}
