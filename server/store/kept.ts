/** Rows that were read lately, by their position: the same few memories are looked at by question after question. */
export interface Kept<Row> {
	get(position: number): Row | undefined;
	put(position: number, row: Row): void;
	drop(position: number): void;
	clear(): void;
}

/** Holds rows of at most `most` in all, as `sizeOf` counts them; what was not asked for longest is dropped first. */
export function createKept<Row>(most: number, sizeOf: (row: Row) => number): Kept<Row> {
	const rows = new Map<number, Row>();
	let size = 0;

	function drop(position: number): void {
		const row = rows.get(position);
		if (row === undefined) return;
		rows.delete(position);
		size -= sizeOf(row);
	}

	return {
		get(position) {
			const row = rows.get(position);
			if (row !== undefined) {
				rows.delete(position);
				rows.set(position, row);
			}
			return row;
		},
		put(position, row) {
			drop(position);
			rows.set(position, row);
			size += sizeOf(row);
			while (size > most && rows.size > 1) drop(rows.keys().next().value as number);
		},
		drop,
		clear() {
			rows.clear();
			size = 0;
		},
	};
}
