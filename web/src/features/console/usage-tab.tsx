import { useQuery } from "@tanstack/react-query";
import { useStatus } from "../../app/session.tsx";
import { api } from "../../lib/api.ts";
import { Loaded } from "./card.tsx";
import { DaysCard } from "./days-card.tsx";
import { FuseCard } from "./fuse-card.tsx";
import { HeartbeatCard } from "./heartbeat-card.tsx";
import { PricesCard } from "./prices-card.tsx";
import css from "./usage.module.css";
import { UsageTables } from "./usage-tables.tsx";
import { useToday } from "./use-usage.ts";

export default function UsageTab() {
	const status = useStatus();
	const today = useToday();
	const fuse = useQuery({ queryKey: ["fuse"], queryFn: ({ signal }) => api.fuse(signal), staleTime: 10_000, refetchInterval: 30_000 });
	const beats = status !== undefined && (status.heartbeat.enabled || status.heartbeat.beats > 0);
	return (
		<div className={css.usage}>
			<div className={css.first} data-three={beats || undefined}>
				<Loaded query={fuse} height={216}>
					{(data) => <FuseCard fuse={data} zone={status?.timezone ?? "UTC"} />}
				</Loaded>
				<DaysCard today={today} currency={fuse.data?.currency ?? "USD"} />
				{beats && status && <HeartbeatCard heartbeat={status.heartbeat} />}
			</div>
			<UsageTables today={today} />
			<PricesCard />
		</div>
	);
}
