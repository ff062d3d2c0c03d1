/** The built page: only files that were found in its folder are ever served, so no path can lead elsewhere. */
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { pathOf } from "./guard.ts";
import { HttpProblem } from "./problem.ts";

const TYPES: Record<string, string> = {
	".html": "text/html; charset=utf-8",
	".js": "text/javascript; charset=utf-8",
	".mjs": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".json": "application/json; charset=utf-8",
	".webmanifest": "application/manifest+json",
	".svg": "image/svg+xml",
	".png": "image/png",
	".jpg": "image/jpeg",
	".webp": "image/webp",
	".ico": "image/x-icon",
	".woff2": "font/woff2",
	".woff": "font/woff",
	".ttf": "font/ttf",
	".txt": "text/plain; charset=utf-8",
	".wasm": "application/wasm",
};

/** What belongs to programs: never answered with the page. */
const PROGRAMS = /^\/(?:api|v1|channels|metrics|healthz)(?:\/|$)/i;
/** The bundler's content hash in a name: such a file never changes. */
const HASHED = /-[A-Za-z0-9_-]{8,}\.[a-z0-9]+$/;

export function isPagePath(path: string): boolean {
	// Dot and encoded segments are judged as what they may become.
	let plain = path;
	try {
		plain = decodeURIComponent(path);
	} catch {
		return false;
	}
	return !PROGRAMS.test(plain.replace(/\/{2,}/g, "/"));
}

interface PageFile {
	file: string;
	bytes: number;
	etag: string;
}

async function scan(dir: string): Promise<Map<string, PageFile>> {
	const files = new Map<string, PageFile>();
	async function walk(folder: string, url: string): Promise<void> {
		for (const entry of await readdir(folder, { withFileTypes: true })) {
			const file = join(folder, entry.name);
			if (entry.isDirectory()) await walk(file, `${url}${entry.name}/`);
			// Links are neither files nor folders here: they are left out. Source maps are for developers.
			else if (entry.isFile() && !entry.name.startsWith(".") && !entry.name.endsWith(".map")) {
				const { size, mtimeMs } = await stat(file);
				files.set(`${url}${entry.name}`, { file, bytes: size, etag: `"${size.toString(36)}-${Math.trunc(mtimeMs).toString(36)}"` });
			}
		}
	}
	await walk(dir, "/");
	return files;
}

export function pageRoutes(app: FastifyInstance, pageDir: string | null): void {
	let files: Promise<Map<string, PageFile>> | null = null;

	async function find(path: string): Promise<PageFile | undefined> {
		if (pageDir === null) return undefined;
		files ??= scan(pageDir).catch(() => new Map());
		const known = await files;
		const found = known.get(path);
		if (found) {
			// The page may be built anew while we run.
			const now = await stat(found.file).catch(() => null);
			if (now?.size === found.bytes && found.etag.endsWith(`-${Math.trunc(now.mtimeMs).toString(36)}"`)) return found;
		} else if (extname(path) === "" || known.has("/index.html")) return undefined;
		files = scan(pageDir).catch(() => new Map());
		return (await files).get(path);
	}

	async function serve(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
		const path = decodeURIComponent(pathOf(request));
		const wantsPage = extname(path) === "" && /^$|text\/html|\*\/\*/.test(request.headers.accept ?? "");
		const found = (await find(path)) ?? (wantsPage && isPagePath(path) ? await find("/index.html") : undefined);
		if (!found) throw new HttpProblem(404, "not-found", "There is nothing here.");
		reply.header("etag", found.etag);
		reply.header("cache-control", path.startsWith("/assets/") && HASHED.test(path) ? "public, max-age=31536000, immutable" : "no-cache");
		if (request.headers["if-none-match"] === found.etag) return reply.code(304).send();
		reply.type(TYPES[extname(found.file).toLowerCase()] ?? "application/octet-stream").header("content-length", found.bytes);
		return request.method === "HEAD" ? reply.send() : reply.send(createReadStream(found.file));
	}

	app.route({ method: ["GET", "HEAD"], url: "/*", schema: { hide: true } as object, config: { page: true }, handler: serve });
}
