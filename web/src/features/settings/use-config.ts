import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, type Config } from "../../lib/api.ts";

export function useConfig() {
	return useQuery({ queryKey: ["config"], queryFn: ({ signal }) => api.config(signal), staleTime: 30_000 });
}

/** Saves a change on top of what the daemon has now, so that an edit by hand meanwhile is not undone. */
export function useSaveConfig() {
	const queries = useQueryClient();
	const [restart, setRestart] = useState<string[]>([]);
	const [saved, setSaved] = useState(false);
	const mutation = useMutation({
		mutationFn: async (change: (config: Config) => Config) => api.saveConfig(change(await api.config())),
		onSuccess(answer) {
			setRestart(answer?.restartNeeded ?? []);
			setSaved(true);
			void queries.invalidateQueries({ queryKey: ["config"] });
			void queries.invalidateQueries({ queryKey: ["status"] });
		},
	});
	useEffect(() => {
		if (!saved) return;
		const timer = setTimeout(() => setSaved(false), 2500);
		return () => clearTimeout(timer);
	}, [saved]);
	return { save: mutation.mutateAsync, busy: mutation.isPending, error: mutation.error, saved, restart };
}

export type SaveConfig = ReturnType<typeof useSaveConfig>;
