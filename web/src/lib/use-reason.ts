import { useTranslation } from "react-i18next";
import { ApiError, Unreachable } from "./api.ts";

/** Turns an error into the half sentence that people read. */
export function useReason(): (error: unknown) => string {
	const { t } = useTranslation();
	return (error) => {
		if (error instanceof Unreachable) return t("error.unreachable");
		if (!(error instanceof ApiError)) return t("error.unknown");
		if (error.problem.code === "passwords-unavailable") return t("error.passwords");
		const details = error.problem.errors?.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; ");
		return details || error.problem.detail || error.problem.title;
	};
}
