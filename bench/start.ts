/** From the start of the process to the ready line and to the first answer; what it holds in memory when idle. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect, makeConversations } from "./lib/client.ts";
import { type Figure, figure } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { makeHome, memoryOf, startDaemon } from "./lib/processes.ts";

export const start: BenchGroup = {
	name: "start",
	title: "Start and idle",
	async run({ model, quick }) {
		const first: number[] = [];
		const ready: number[] = [];
		const reply: number[] = [];
		const resident: number[] = [];
		const anonymous: number[] = [];
		for (let run = 0; run < (quick ? 3 : 7); run++) {
			const home = await makeHome();
			const fresh = await startDaemon(home.path, model.url);
			first.push(fresh.readyMs);
			const [conversation = ""] = await makeConversations(fresh, 1);
			await fresh.stop();
			const daemon = await startDaemon(home.path, model.url);
			ready.push(daemon.readyMs);
			const client = await connect(daemon.url, "/api/v1/live", daemon.token);
			const { doneAt } = await client.ask(conversation, "hi");
			reply.push(doneAt - daemon.startedAt);
			client.close();
			if (run < 3) {
				await sleep(quick ? 2_000 : 5_000);
				const memory = await memoryOf(daemon.pid);
				if (memory) {
					resident.push(memory.resident);
					anonymous.push(memory.anonymous);
				}
			}
			await daemon.stop();
			await home.remove();
		}
		const figures: Figure[] = [
			figure("ready, empty home", "ms", first),
			figure("ready", "ms", ready, { aim: { atMost: 600 } }),
			figure("first answer", "ms", reply, { aim: { atMost: 900 } }),
		];
		if (resident.length > 0) {
			figures.push(figure("idle after one answer, resident", "MB", resident, { aim: { atMost: 130 } }));
			figures.push(figure("  anonymous", "MB", anonymous));
		}
		return figures;
	},
};
