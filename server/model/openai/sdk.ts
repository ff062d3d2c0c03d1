/** The SDK's client for one server and key, spared what it would make anew for every call and always alike. */
import type OpenAI from "openai";
import type { Transport } from "./transport.ts";

type Options = Parameters<OpenAI["buildRequest"]>[0];
type Built = Awaited<ReturnType<OpenAI["buildRequest"]>>;

/** `key`: "" sends none. Loads the SDK when it is first called. */
export async function createSdk(baseUrl: string, key: string, transport: Transport): Promise<OpenAI> {
	const sdk = await import("openai");
	// By this name it tells the server what it is.
	class OpenAI extends sdk.OpenAI {
		/** Addresses and headers of requests whose body is ready, by path. */
		readonly #ready = new Map<string, { url: string; timeout: number; headers: [string, string][] }>();

		/** Nothing but the body differs between two such requests, as long as they bring the same headers, and ours do. */
		override async buildRequest(options: Options, retry?: { retryCount?: number }): Promise<Built> {
			if (typeof options.body !== "string") return super.buildRequest(options, retry);
			let ready = this.#ready.get(options.path);
			if (!ready) {
				const { req, url, timeout } = await super.buildRequest(options, retry);
				ready = { url, timeout, headers: [...(req.headers as Headers)] };
				this.#ready.set(options.path, ready);
			}
			const { url, timeout, headers } = ready;
			// Not as its `headers`: those the SDK copies for a log that is off.
			const req = { method: options.method, body: options.body, headers: {}, ready: headers, ...options.fetchOptions };
			return { req: req as unknown as Built["req"], url, timeout };
		}

		/** Without its timer and its signal: whoever asks has his own. */
		override fetchWithTimeout(url: string | URL | Request, init: RequestInit | undefined): Promise<Response> {
			return transport.fetch(url, init);
		}
	}
	return new OpenAI({
		baseURL: baseUrl,
		apiKey: key || "none",
		organization: null,
		project: null,
		maxRetries: 0,
		logLevel: "off",
		...(key ? {} : { defaultHeaders: { authorization: null } }),
	});
}
