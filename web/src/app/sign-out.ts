import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "react-router";
import { api } from "../lib/api.ts";

/** Ends the session here even when the daemon does not answer; its own record runs out by itself. */
export function useSignOut(): () => void {
	const queries = useQueryClient();
	const navigate = useNavigate();
	return () => {
		void api
			.logout()
			.catch(() => {})
			.then(async () => {
				sessionStorage.clear();
				await navigate("/login", { replace: true });
				queries.clear();
			});
	};
}
