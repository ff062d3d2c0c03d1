import type { Models } from "../model/models.ts";
import type { Embedder } from "./options.ts";

/** The configured embedding model as the memory uses it; null = the memory's own lexical vectors. */
export function embedderOf(models: Pick<Models, "embedding" | "embed">): Embedder | null {
	const embedding = models.embedding();
	if (!embedding) return null;
	return {
		// Vectors of another endpoint's model of the same name are not comparable.
		model: `${embedding.model}@${embedding.baseUrl}`,
		async embed(texts, { owner, conversationId }, signal) {
			const { vectors } = await models.embed(texts, { source: "embedding", conversationId, turnId: null, personId: owner }, signal);
			return vectors;
		},
	};
}
