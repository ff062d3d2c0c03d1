/** A lock that many hold beside each other, or one alone: whoever asks first is served first, so that neither kind keeps the other out for ever. */
export interface SharedLock {
	/** Resolves when the caller may go on beside others. Each `enter` has its `leave`. */
	enter(): Promise<void>;
	leave(): void;
	/** Runs `work` when nobody is inside, and lets nobody in meanwhile. Must not be called from inside. */
	alone<T>(work: () => Promise<T>): Promise<T>;
}

export function createSharedLock(): SharedLock {
	const queue: { alone: boolean; go(): void }[] = [];
	let inside = 0;
	let taken = false;

	function admit(): void {
		for (;;) {
			const [next] = queue;
			if (!next || taken || (next.alone && inside > 0)) return;
			queue.shift();
			if (next.alone) taken = true;
			else inside++;
			next.go();
		}
	}

	const ask = (alone: boolean): Promise<void> =>
		new Promise((go) => {
			queue.push({ alone, go });
			admit();
		});

	return {
		enter: () => ask(false),
		leave() {
			inside--;
			admit();
		},
		async alone(work) {
			await ask(true);
			try {
				return await work();
			} finally {
				taken = false;
				admit();
			}
		},
	};
}
