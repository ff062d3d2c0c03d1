/** Which models may answer a request, in order, and whether each of them can be called at all. */
import type { ModelRequest } from "./model.ts";
import { baseUrlOf, originOf, type ProviderPreset, providerOf } from "./providers.ts";
import type { ModelRoles, ModelSettings } from "./settings.ts";

/** A model that can be called. */
export interface Target {
	settings: ModelSettings;
	preset: ProviderPreset;
	baseUrl: string;
	/** What shares a breaker and back-off. */
	origin: string;
	/** Keys that are set; empty where none is needed. */
	keys: string[];
}

/** Settings are replaced and never changed, and each call asks for the target several times. */
const known = new WeakMap<ModelSettings, Target | { problem: string }>();

/** The target, or one sentence on why there is none. */
export function targetOf(settings: ModelSettings): Target | { problem: string } {
	let target = known.get(settings);
	if (!target) {
		target = readTarget(settings);
		known.set(settings, target);
	}
	return target;
}

function readTarget(settings: ModelSettings): Target | { problem: string } {
	const preset = providerOf(settings.provider);
	const baseUrl = baseUrlOf(settings);
	if (baseUrl === null) return { problem: settings.baseUrl ? "the base URL is not an http(s) address" : "no base URL" };
	if (settings.model.trim() === "") return { problem: "no model name" };
	const keys = [...new Set(settings.apiKeys.map((key) => key.trim()).filter((key) => key !== "" && !/^\$\{\w+\}$/.test(key)))];
	// A server under another address than the preset's may well want no key.
	const own = preset.baseUrl !== "" && baseUrl === preset.baseUrl;
	if (keys.length === 0 && own && preset.keyVariable !== null) return { problem: "no API key" };
	if (keys.some((key) => !/^[\x21-\x7e]+$/.test(key))) return { problem: "an API key holds characters that no key has" };
	return { settings, preset, baseUrl, origin: originOf(baseUrl), keys };
}

export const talks = (settings: ModelSettings): boolean => settings.kind === "text" || settings.kind === "multimodal";

/** Models for a request, best first. Ids that are not configured are left out. */
export function candidatesFor(
	request: Pick<ModelRequest, "role" | "model"> & { images: boolean },
	models: ModelSettings[],
	roles: ModelRoles,
): ModelSettings[] {
	const byId = new Map(models.map((settings) => [settings.id, settings]));
	const chat = roles.chat.length > 0 ? roles.chat : models.filter(talks).map((settings) => settings.id);
	const own = request.role === "chat" ? null : roles[request.role];
	const order = new Set<ModelSettings>();
	for (const id of [request.model, own, ...chat]) {
		const settings = id ? byId.get(id) : undefined;
		if (settings && talks(settings)) order.add(settings);
	}
	const unique = [...order];
	const seesImages = request.role === "vision" || request.images;
	if (!seesImages || unique[0]?.kind === "multimodal") return unique;
	const vision = roles.vision ? byId.get(roles.vision) : undefined;
	const able = unique.filter((settings) => settings.kind === "multimodal" && settings !== vision);
	const first = [...(vision && talks(vision) ? [vision] : []), ...able];
	return [...first, ...unique.filter((settings) => !first.includes(settings))];
}
