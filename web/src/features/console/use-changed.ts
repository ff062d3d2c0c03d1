import { useCallback } from "react";
import type { useSearchParams } from "react-router";

/** The address's query and a way to change single values of it; null takes one out. */
export function useChanged([params, setParams]: ReturnType<typeof useSearchParams>) {
	const change = useCallback(
		(values: Record<string, string | null>) =>
			setParams(
				(before) => {
					for (const [name, value] of Object.entries(values)) {
						if (value === null) before.delete(name);
						else before.set(name, value);
					}
					return before;
				},
				{ replace: true },
			),
		[setParams],
	);
	return [params, change] as const;
}
