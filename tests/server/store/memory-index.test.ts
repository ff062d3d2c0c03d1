import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKept } from "../../../server/store/kept.ts";
import { type MainEntry, type MemoryIndex, openMemoryIndex } from "../../../server/store/memory-index.ts";
import { openSqlite } from "../../../server/store/sqlite.ts";
import { type TestHome, testHome } from "../../helpers/store.ts";

describe("rows that were read lately", () => {
	it("are kept up to a size in all, those asked for last", () => {
		const kept = createKept<string>(10, (row) => row.length);
		kept.put(1, "aaaa");
		kept.put(2, "bbbb");
		expect(kept.get(1)).toBe("aaaa");
		kept.put(3, "cccc");
		expect([1, 2, 3].map(kept.get)).toEqual(["aaaa", undefined, "cccc"]);
		kept.put(3, "c");
		kept.put(4, "dddd");
		expect([1, 3, 4].map(kept.get)).toEqual(["aaaa", "c", "dddd"]);
		kept.drop(1);
		kept.put(5, "eeeee");
		expect([1, 3, 4, 5].map(kept.get)).toEqual([undefined, "c", "dddd", "eeeee"]);
		kept.clear();
		expect([3, 4, 5].map(kept.get)).toEqual([undefined, undefined, undefined]);
	});

	it("hold one that is larger than all may be, until the next", () => {
		const kept = createKept<string>(3, (row) => row.length);
		kept.put(1, "aaaaa");
		expect(kept.get(1)).toBe("aaaaa");
		kept.put(2, "b");
		expect([1, 2].map(kept.get)).toEqual([undefined, "b"]);
	});
});

describe("the index", () => {
	let home: TestHome;
	let index: MemoryIndex;
	beforeEach(async () => {
		home = await testHome();
		await (await home.open()).close();
		index = openMemoryIndex({ mainFile: home.file, indexFile: join(home.file, "..", "memory-index.db"), timezone: "UTC" });
	});
	afterEach(async () => {
		index.close();
		await home.remove();
	});

	const key = { owner: "master", audience: "private" } as const;
	const entry = (position: number, change: Partial<MainEntry> = {}): MainEntry => ({
		position,
		id: `e${position}`,
		...key,
		at: 1000,
		source: "fact",
		ref: null,
		conversation_id: null,
		text: "",
		hash: "h",
		seq: position,
		removed: 0,
		used: 0,
		vector_model: null,
		...change,
	});
	const scope = () => {
		const found = index.scope(key, true);
		if (!found) throw new Error("no scope");
		return found;
	};
	const terms = (positions: number[]) => index.docs(positions).map((doc) => `${doc.position} ${doc.terms.join("+")}`);

	it("answers documents by position, also those it has answered before", () => {
		for (const position of [3, 1, 2]) index.put(scope(), entry(position), ["word", `n${position}`], []);
		expect(terms([2])).toEqual(["2 word+n2"]);
		expect(terms([3, 2, 9, 1])).toEqual(["1 word+n1", "2 word+n2", "3 word+n3"]);
		expect(terms([3, 2, 1])).toEqual(["1 word+n1", "2 word+n2", "3 word+n3"]);
	});

	it("answers what was put anew, and nothing that was dropped", () => {
		for (const position of [1, 2]) index.put(scope(), entry(position), ["old"], []);
		expect(terms([1, 2])).toEqual(["1 old", "2 old"]);
		index.put(scope(), entry(1), ["new"], []);
		index.drop(2);
		expect(terms([1, 2])).toEqual(["1 new"]);
		expect(index.match(scope(), ["old"], 5)).toEqual([]);
	});

	it("answers the vector that an entry has now", async () => {
		const { raw, db } = await openSqlite(home.file, 0);
		const store = (vector: number[]) =>
			raw
				.prepare(
					"insert into memory_vectors (position, model, dimension, vector) values (1, 'm', 8, ?) on conflict do update set vector = excluded.vector",
				)
				.run(Buffer.from(Float32Array.from(vector).buffer));
		raw.pragma("foreign_keys = OFF");
		index.put(scope(), entry(1), ["word"], []);
		store([1, 0, 0, 0, 0, 0, 0, 0]);
		expect([...(index.vectors([1], "m").get(1) ?? [])]).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
		store([0, 1, 0, 0, 0, 0, 0, 0]);
		index.putVector(scope(), entry(1, { vector_model: "m" }), "m");
		expect([...(index.vectors([1], "m").get(1) ?? [])]).toEqual([0, 1, 0, 0, 0, 0, 0, 0]);
		expect(index.vectors([1], "another").size).toBe(0);
		raw.exec("delete from memory_vectors");
		index.drop(1);
		expect(index.vectors([1], "m").size).toBe(0);
		await db.destroy();
	});
});
