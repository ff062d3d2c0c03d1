/** Pieces that several routes' schemas share. */
import { z } from "zod";

export const Id = z.object({ id: z.string().min(1).max(200) });

/** How many rows a list brings; whoever asks for more than `most` gets that many. */
export const limitOf = (usual: number, most: number) =>
	z.coerce
		.number()
		.int()
		.min(1)
		.default(usual)
		.transform((value) => Math.min(value, most));
export const limit = limitOf(50, 200);
export const before = z.string().min(1).max(200).optional();
/** An answer without a body. */
export const Nothing = z.null();
