/** Waiting that ends by itself: by time, when the client goes away, or when the server closes. */
import type { FastifyReply } from "fastify";

export interface Wait {
	signal: AbortSignal;
	/** True once the client is gone. */
	clientGone(): boolean;
	/** Frees timer and listeners; always to be called. */
	end(): void;
}

export function startWait(reply: FastifyReply, closing: AbortSignal, timeoutMs?: number): Wait {
	const controller = new AbortController();
	let gone = false;
	const abort = () => controller.abort();
	const onClose = () => {
		gone = !reply.raw.writableFinished;
		abort();
	};
	const timer = timeoutMs === undefined ? undefined : setTimeout(abort, timeoutMs);
	reply.raw.on("close", onClose);
	if (closing.aborted) abort();
	closing.addEventListener("abort", abort);
	return {
		signal: controller.signal,
		clientGone: () => gone,
		end() {
			clearTimeout(timer);
			reply.raw.off("close", onClose);
			closing.removeEventListener("abort", abort);
		},
	};
}
