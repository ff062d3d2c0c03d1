import { useTranslation } from "react-i18next";
import { type FailureKind, failureOf } from "./failure.ts";

/** A stored error ("network: the connection failed: ECONNREFUSED") as people read it; anything else as it is. */
export function useFailureWords(): (stored: string) => string {
	const { t } = useTranslation();
	const word = (kind: FailureKind) => t(`calls.failure.${kind}`);
	return (stored) => {
		const { kind, said } = failureOf(stored);
		if (kind === null) return stored;
		return said === "" ? word(kind) : t("calls.failureSaid", { what: word(kind), said });
	};
}
