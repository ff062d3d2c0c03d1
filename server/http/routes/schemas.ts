/** Pieces that several routes' schemas share. */
import { z } from "zod";

export const Id = z.object({ id: z.string().min(1).max(200) });

/** `limit` of a list: 50 unless asked for, at most 200. */
export const limit = z.coerce
	.number()
	.int()
	.min(1)
	.default(50)
	.transform((value) => Math.min(value, 200));
export const before = z.string().min(1).max(200).optional();
/** An answer without a body. */
export const Nothing = z.null();
