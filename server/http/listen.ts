import type { FastifyInstance } from "fastify";

/** A start that cannot succeed, with one sentence for the person at the terminal. */
export class StartRefused extends Error {
	constructor(message: string) {
		super(message);
		this.name = "StartRefused";
	}
}

/** Listens, or throws `StartRefused` with what the person at the terminal can do. */
export async function listen(app: FastifyInstance, host: string, port: number): Promise<void> {
	try {
		await app.listen({ host, port });
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code === "EADDRINUSE")
			throw new StartRefused(
				`Port ${port} on ${host} is taken: another program, or another OpenLani, listens there. Use --port N (0 picks a free one).`,
			);
		if (code === "EACCES") throw new StartRefused(`Port ${port} may not be used by this user. Use a port above 1023.`);
		if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") throw new StartRefused(`This machine has no address ${host} to listen on.`);
		throw error;
	}
}

const bracketed = (host: string) => (host.includes(":") ? `[${host}]` : host);
/** The host as it stands in an address that works on this machine. */
export const displayHost = (host: string) => bracketed(host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host);
