/** Many conversations at once, each sending its next message when the last was answered. */
import { type ChatClient, connect, makeConversations } from "./lib/client.ts";
import { type Figure, figure, median } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { makeHome, now, startDaemon, startFloor } from "./lib/processes.ts";

async function rate(client: ChatClient, conversations: string[], ms: number): Promise<number> {
	let answered = 0;
	const endsAt = now() + ms;
	const startedAt = now();
	await Promise.all(
		conversations.map(async (conversation) => {
			while (now() < endsAt) {
				await client.ask(conversation, `hello ${answered}`);
				answered++;
			}
		}),
	);
	return (answered / (now() - startedAt)) * 1000;
}

const AT = [1, 10, 50];

async function rates(client: ChatClient, conversations: string[], quick: boolean): Promise<Map<number, number[]>> {
	const found = new Map<number, number[]>(AT.map((count) => [count, []]));
	await rate(client, conversations.slice(0, 10), 1_000);
	for (let run = 0; run < (quick ? 1 : 3); run++) {
		for (const count of AT) found.get(count)?.push(await rate(client, conversations.slice(0, count), quick ? 1_500 : 3_000));
	}
	return found;
}

export const throughput: BenchGroup = {
	name: "throughput",
	title: "Messages a second",
	async run({ model, quick }) {
		const floor = await startFloor(model.url);
		const floorClient = await connect(floor.url, "/live");
		const bare = await rates(
			floorClient,
			Array.from({ length: 50 }, (_, n) => `c${n}`),
			quick,
		);
		floorClient.close();
		await floor.close();

		const home = await makeHome();
		const daemon = await startDaemon(home.path, model.url);
		const client = await connect(daemon.url, "/api/v1/live", daemon.token);
		try {
			const ours = await rates(client, await makeConversations(daemon, 50), quick);
			const figures: Figure[] = [];
			for (const count of AT) {
				const samples = ours.get(count) ?? [];
				const aim = count === 50 ? { aim: { atLeast: 300 } } : {};
				figures.push(figure(`${count} conversation${count > 1 ? "s" : ""}`, "/s", samples, aim));
			}
			const kept = (100 * median(ours.get(50) ?? [])) / median(ours.get(10) ?? []);
			figures.push(figure("  rate at 50 of the rate at 10", "%", [kept], { aim: { atLeast: 90 } }));
			for (const count of AT) figures.push(figure(`the floor: ${count}`, "/s", bare.get(count) ?? []));
			return figures;
		} finally {
			client.close();
			await daemon.stop();
			await home.remove();
		}
	},
};
