/** Approvals on a real store, with a clock that stands and a gateway that only notes what it is told. */
import { v7 } from "uuid";
import type { GateTurn } from "../../../server/agent/types.ts";
import type { LiveBody } from "../../../server/http/contract.ts";
import { type ApprovalOptions, createApprovals } from "../../../server/safety/approvals.ts";
import type { OpenStore } from "../../../server/store/open.ts";
import { testHome } from "../../helpers/store.ts";

export type Resumed = Parameters<ApprovalOptions["resume"]>[0];

export async function openApprovals() {
	const home = await testHome();
	const store = (await home.open()) as OpenStore;
	const frames: LiveBody[] = [];
	const resumed: Resumed[] = [];
	const state = { automatic: "deny" as "deny" | "ask", failing: false, locale: "en" };
	const make = () =>
		createApprovals({
			store: store.approvals,
			durable: () => store.durable(),
			publish: (body) => void frames.push(body),
			policy: (tool) => (tool === "forget" ? "ask" : tool === "never" ? "deny" : "allow"),
			settings: () => ({ expiresS: 900, automatic: state.automatic }),
			async resume(message) {
				if (state.failing) throw new Error("stopping");
				resumed.push(message);
				return { turnId: `turn-of-${message.externalId}` };
			},
			locale: () => state.locale,
			clock: home.clock,
			newId: () => v7(),
			log: { info: () => undefined, error: () => undefined },
		});
	const approvals = make();
	let calls = 0;
	/** A call at the gate. */
	const gate = (change: Partial<GateTurn> & { tool?: string } = {}) => {
		const { tool = "forget", ...turn } = change;
		calls += 1;
		return approvals.gate(
			{ id: "call_1", name: tool, arguments: "{}" },
			{
				turnId: "t1",
				conversationId: "c1",
				personId: "master",
				tier: "master",
				groupId: null,
				origin: "human",
				tainted: [],
				recordId: `r${calls}`,
				arguments: '{"id":"m1"}',
				...turn,
			},
		);
	};
	const pending = async () => (await approvals.list({ state: "pending", limit: 50 })).map(({ id }) => id);
	return {
		home,
		store,
		frames,
		resumed,
		state,
		approvals,
		make,
		gate,
		pending,
		async one(): Promise<string> {
			return (await pending())[0] ?? "nothing waits";
		},
		async close() {
			await store.close();
			await home.remove();
		},
	};
}
