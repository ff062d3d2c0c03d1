/** Why a model or a key cannot be used, as words of the page. Pure; a reason we have no words for stays as it is. */
import type { Status } from "../../../../server/http/contract.ts";

type ModelState = Status["models"][number];
/** A key of `en.modelProblem` with what fills it in, or a text as it stands. */
export type Words =
	| { key: "noKey" | "noUrl" | "badUrl" | "noName" | "oddKey" | "allAside" | "someAside" | "refused" | "noCredit"; said?: string }
	| { text: string };

const known: Record<string, Exclude<Words, { text: string }>> = {
	"no API key": { key: "noKey" },
	"no base URL": { key: "noUrl" },
	"the base URL is not an http(s) address": { key: "badUrl" },
	"no model name": { key: "noName" },
	"an API key holds characters that no key has": { key: "oddKey" },
};

export function problemOf({ problem, keys }: Pick<ModelState, "problem" | "keys">): Words | null {
	if (problem === null) return null;
	const aside = keys.filter((key) => key.state === "set-aside").length;
	if (aside > 0) return aside === keys.length ? { key: "allAside" } : { key: "someAside", said: `${aside}/${keys.length}` };
	return Object.hasOwn(known, problem) ? (known[problem] ?? null) : { text: problem };
}

export function reasonOf(reason: string): Words {
	if (reason.startsWith("no credit ")) return { key: "noCredit" };
	const code = /^refused with (.+)$/.exec(reason)?.[1];
	return code === undefined ? { text: reason } : { key: "refused", said: code };
}

/** Safe mode without a mistake in the configuration: no model can be used. */
export function isWithoutModel(status: Pick<Status, "state"> & { config: Pick<Status["config"], "errors"> }): boolean {
	return status.state === "safe-mode" && status.config.errors.length === 0;
}
