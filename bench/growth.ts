/** A thousand exchanges in one conversation: the thousandth should cost what the fiftieth did. */
import { connect, makeConversations } from "./lib/client.ts";
import { type Figure, figure, median } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { makeHome, memoryOf, startDaemon } from "./lib/processes.ts";

const LAST = 1_000;
/** Exchanges on each side of the one that is looked at. */
const AROUND = 20;

export const growth: BenchGroup = {
	name: "growth",
	title: "Growth over 1,000 exchanges",
	async run({ model }) {
		const home = await makeHome();
		const daemon = await startDaemon(home.path, model.url);
		const client = await connect(daemon.url, "/api/v1/live", daemon.token);
		try {
			const [conversation = "", warm = ""] = await makeConversations(daemon, 2);
			// So that the fiftieth exchange is not measured on code that is still cold.
			for (let n = 0; n < 200; n++) await client.ask(warm, `warm up ${n}`);
			const took: number[] = [];
			let early: number | null = null;
			for (let n = 1; n <= LAST + AROUND; n++) {
				const { sentAt, doneAt } = await client.ask(conversation, `message ${n} of a long conversation about nothing in particular`);
				took.push(doneAt - sentAt);
				if (n === 50) early = (await memoryOf(daemon.pid))?.resident ?? null;
			}
			const late = (await memoryOf(daemon.pid))?.resident ?? null;
			const around = (n: number) => took.slice(n - AROUND - 1, n + AROUND);
			const [atFifty, atLast] = [around(50), around(LAST)];
			const figures: Figure[] = [
				figure("around exchange 50", "ms", atFifty),
				figure("around exchange 1,000", "ms", atLast),
				figure("  of exchange 50", "x", [median(atLast) / median(atFifty)], { aim: { atMost: 1.3 } }),
			];
			if (early !== null && late !== null) figures.push(figure("memory grew by", "MB", [late - early], { aim: { atMost: 50 } }));
			return figures;
		} finally {
			client.close();
			await daemon.stop();
			await home.remove();
		}
	},
};
