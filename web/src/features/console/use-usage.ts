import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { UsageRow } from "../../../../server/http/contract.ts";
import { useStatus } from "../../app/session.tsx";
import { api, type UsageBy } from "../../lib/api.ts";
import { dayIn, lastDays } from "./usage.ts";

/** The day it is in the configured zone; null until the zone is known. */
export function useToday(): string | null {
	const status = useStatus();
	return status ? dayIn(Date.now(), status.timezone) : null;
}

export function useUsage(by: UsageBy, span: { from: string; to: string } | null) {
	return useQuery({
		queryKey: ["usage", by, span?.from, span?.to],
		queryFn: ({ signal }) => api.usage({ from: span?.from ?? "", to: span?.to ?? "", by }, signal),
		enabled: span !== null,
		staleTime: 30_000,
	});
}

export interface DaysOfUse {
	days: string[];
	/** By day, one row a source. */
	sources: Map<string, UsageRow[]>;
	state: "loading" | "ready" | "failed";
	error: Error | null;
	retry(): void;
}

/** The last `count` days by source. Only days with any use are asked for, and days that are over only once. */
export function useDays(today: string | null, count: number): DaysOfUse {
	const days = useMemo(() => (today === null ? [] : lastDays(today, count)), [today, count]);
	const first = days[0];
	const sums = useUsage("day", first && today ? { from: first, to: today } : null);
	const used = sums.data?.rows.map((row) => row.key).filter((day) => days.includes(day)) ?? [];
	const parts = useQueries({
		queries: used.map((day) => ({
			queryKey: day === today ? ["usage", "source", day, day] : ["usage-past", day],
			queryFn: ({ signal }: { signal: AbortSignal }) => api.usage({ from: day, to: day, by: "source" }, signal),
			staleTime: day === today ? 30_000 : 3_600_000,
		})),
	});
	const failed = [sums, ...parts].find((query) => query.error && query.data === undefined);
	const ready = sums.data !== undefined && parts.every((query) => query.data !== undefined);
	return {
		days,
		sources: new Map(used.map((day, index) => [day, parts[index]?.data?.rows ?? []])),
		state: failed ? "failed" : ready ? "ready" : "loading",
		error: failed?.error ?? null,
		retry() {
			for (const query of [sums, ...parts]) if (query.error) void query.refetch();
		},
	};
}
