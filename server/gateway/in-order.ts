/** Work of one kind, one after the other in each conversation. What fails holds up nobody. */
export function createInOrder() {
	const last = new Map<string, Promise<unknown>>();
	return {
		run<T>(id: string, work: () => Promise<T>): Promise<T> {
			const mine = (last.get(id) ?? Promise.resolve()).then(work);
			const over = mine
				.catch(() => undefined)
				.finally(() => {
					if (last.get(id) === over) last.delete(id);
				});
			last.set(id, over);
			return mine;
		},
		/** Resolves when what was begun up to now is over; undefined when nothing is under way. */
		pending: (id: string): Promise<unknown> | undefined => last.get(id),
	};
}
