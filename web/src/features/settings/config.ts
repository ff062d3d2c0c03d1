/** Reading and changing the configuration as JSON. Pure: every change answers a new whole. */
import type { ModelEntry, Status } from "../../../../server/http/contract.ts";
import type { Config } from "../../lib/api.ts";

/** An entry of `models`: what we edit, and whatever else stands there (prices, limits), which is kept. */
export type ConfigModel = ModelEntry & Record<string, unknown>;

export function modelsOf(config: Config): ConfigModel[] {
	return Array.isArray(config.models) ? (config.models as ConfigModel[]) : [];
}

/** Models that answer although the configuration file has none of that id: the environment's. */
export function givenModels(config: Config, status: Pick<Status, "models" | "demo"> | undefined): Status["models"] {
	if (!status || status.demo) return [];
	const written = new Set(modelsOf(config).map((model) => model.id));
	return status.models.filter((model) => !written.has(model.id));
}

/** The chat role's order of models; ids that exist only. */
export function chatOrder(config: Config): string[] {
	const chat = (config.roles as { chat?: unknown } | null | undefined)?.chat;
	const wanted = Array.isArray(chat) ? chat : chat ? [chat] : [];
	const ids = new Set(modelsOf(config).map((model) => model.id));
	return wanted.filter((id): id is string => typeof id === "string" && ids.has(id));
}

function withChat(config: Config, chat: string[]): Config {
	return { ...config, roles: { ...(config.roles as object | undefined), chat } };
}

/** Adds the entry, or puts it in place of `replacing`, whose roles it takes over. */
export function putModel(config: Config, entry: ModelEntry, replacing: string | null): Config {
	const models = modelsOf(config);
	if (replacing === null) return withChat({ ...config, models: [...models, entry] }, [...chatOrder(config), entry.id]);
	const changed = { ...config, models: models.map((model) => (model.id === replacing ? { ...model, ...entry } : model)) };
	return renameInRoles(changed, replacing, entry.id);
}

/** Takes the entry out, and out of every role. */
export function dropModel(config: Config, id: string): Config {
	return renameInRoles({ ...config, models: modelsOf(config).filter((model) => model.id !== id) }, id, null);
}

export function answerFirst(config: Config, id: string): Config {
	return withChat(config, [id, ...chatOrder(config).filter((one) => one !== id)]);
}

function renameInRoles(config: Config, from: string, to: string | null): Config {
	const roles = Object.entries((config.roles as Record<string, unknown> | undefined) ?? {}).map(([role, value]) => {
		if (Array.isArray(value)) return [role, value.flatMap((id) => (id === from ? (to === null ? [] : [to]) : [id]))];
		return [role, value === from ? to : value];
	});
	return { ...config, roles: Object.fromEntries(roles) };
}

export function dailyTokens(config: Config): number {
	const value = (config.budget as { dailyTokens?: unknown } | null | undefined)?.dailyTokens;
	return typeof value === "number" ? value : 0;
}

export function withDailyTokens(config: Config, tokens: number): Config {
	return { ...config, budget: { ...(config.budget as object | undefined), dailyTokens: tokens } };
}
