/** Which models answer in this home: a running daemon knows it, the variables of this shell may be others than those it was started with. */
import { chatModels, environmentModelId } from "../config/parse.ts";
import type { ConfigService } from "../config/service.ts";
import type { Client } from "./client.ts";

export interface ModelInForce {
	id: string;
	provider: string;
	model: string;
	kind: string;
	/** Null also where only the daemon knows it. */
	baseUrl: string | null;
	keys: number;
	/** `environment`: OPENAI_API_KEY, OPENAI_BASE_URL, OPENLANI_MODEL of the daemon, or of this shell while none runs. */
	from: "config.yaml" | "environment";
}

export async function modelsInForce(
	config: ConfigService,
	daemon: Client | null,
	signal: AbortSignal,
): Promise<{ models: ModelInForce[]; chat: string[] }> {
	const current = config.current();
	const local = current.models.map(({ id, provider, model, kind, baseUrl, apiKeys }) => ({
		id,
		provider,
		model,
		kind,
		baseUrl,
		keys: apiKeys.length,
	}));
	const status = await daemon?.status(signal);
	const found = status
		? status.models
				.filter(({ provider }) => provider !== "demo")
				.map(({ id, provider, model, kind, keys }) => ({
					id,
					provider,
					model,
					kind,
					baseUrl: local.find((one) => one.id === id && one.model === model)?.baseUrl ?? null,
					keys: keys.length,
				}))
		: local;
	// The environment's model takes the second name where the file has a model of the first.
	const second = `${environmentModelId}-openai`;
	const given = found.some(({ id }) => id === second) ? second : environmentModelId;
	const models = found.map((one): ModelInForce => ({ ...one, from: one.id === given ? "environment" : "config.yaml" }));
	const order = chatModels(current);
	const own = models.find(({ id, from }) => from === "environment" && !order.includes(id));
	return { models, chat: [...(own ? [own.id] : []), ...order.filter((id) => models.some((one) => one.id === id))] };
}
