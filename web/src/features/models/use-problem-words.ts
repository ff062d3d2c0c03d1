import { useTranslation } from "react-i18next";
import type { Status } from "../../../../server/http/contract.ts";
import { problemOf, reasonOf, type Words } from "./problems.ts";

/** Sentences about a model that cannot be used and about its keys, in the page's language. */
export function useProblemWords() {
	const { t } = useTranslation();
	const told = (words: Words) => ("text" in words ? words.text : t(`modelProblem.${words.key}`, { said: words.said ?? "" }));
	return {
		problem(model: Status["models"][number]): string | null {
			const words = problemOf(model);
			return words && told(words);
		},
		keysAside: (model: Status["models"][number]): string[] =>
			model.keys
				.filter((key) => key.state === "set-aside")
				.map((key) => t("settings.setAside", { key: key.key, reason: told(reasonOf(key.reason ?? "")) })),
	};
}
