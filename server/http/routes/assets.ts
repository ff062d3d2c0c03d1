/** Attachments: uploaded as a form or as they are, handed out so that nothing in them can run in the page. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { App, Context } from "../context.ts";
import { Attachment } from "../contract.ts";
import { keptType, rangeOf, safeName, served } from "../files.ts";
import { ASSET_POLICY } from "../headers.ts";
import { HttpProblem, notFound } from "../problem.ts";

const FILE_BYTES = 32 * 1024 * 1024;

interface Upload {
	data: Uint8Array;
	name: string | undefined;
	mimeType: string | undefined;
}

/** The first file of a form. The runtime's own parser reads it: the body is bounded and in memory already. */
async function fromForm(body: Buffer, contentType: string): Promise<Upload> {
	let form: FormData;
	try {
		form = await new Response(new Uint8Array(body), { headers: { "content-type": contentType } }).formData();
	} catch {
		throw new HttpProblem(400, "bad-form", "The form could not be read.");
	}
	for (const value of form.values()) {
		if (typeof value !== "string") return { data: new Uint8Array(await value.arrayBuffer()), name: value.name, mimeType: value.type };
	}
	throw new HttpProblem(400, "no-file", "The form holds no file.");
}

async function uploadOf(request: FastifyRequest, name: string | undefined): Promise<Upload> {
	const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
	const contentType = request.headers["content-type"] ?? "";
	const upload = /^multipart\/form-data\b/i.test(contentType)
		? await fromForm(body, contentType)
		: { data: body, name: undefined, mimeType: contentType };
	if (upload.data.byteLength === 0) throw new HttpProblem(400, "empty-file", "The file is empty.");
	return { ...upload, name: name ?? upload.name };
}

export function assetRoutes(app: App, { deps }: Context): void {
	const { assets } = deps.store;

	void app.register((scope: App, _options, done) => {
		scope.removeAllContentTypeParsers();
		scope.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: FILE_BYTES }, (_request, body, done) => done(null, body));
		scope.post(
			"/api/v1/assets",
			{
				bodyLimit: FILE_BYTES,
				schema: {
					querystring: z.object({ name: z.string().max(1000).optional() }),
					consumes: ["multipart/form-data", "application/octet-stream"],
					response: { 201: Attachment },
				} as { querystring: z.ZodObject<{ name: z.ZodOptional<z.ZodString> }>; response: { 201: typeof Attachment } },
			},
			async (request, reply) => {
				const upload = await uploadOf(request, request.query.name);
				const { sha256, name, mimeType, bytes, kind } = await assets.put(upload.data, {
					name: safeName(upload.name),
					mimeType: keptType(upload.mimeType, upload.data),
				});
				return reply.code(201).send({ sha256, name, mimeType, bytes, kind });
			},
		);
		done();
	});

	app.get(
		"/api/v1/assets/:sha256",
		{ schema: { params: z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }) } },
		async (request, reply) => {
			const asset = await assets.get(request.params.sha256);
			const file = asset && (await assets.path(asset.sha256));
			const found = file ? await stat(file).catch(() => null) : null;
			if (!asset || !file || !found?.isFile()) throw notFound("asset");
			const { type, disposition } = served(asset.mimeType, asset.name);
			reply
				.type(type)
				.header("content-disposition", disposition)
				.header("content-security-policy", ASSET_POLICY)
				.header("cache-control", "private, max-age=31536000, immutable")
				.header("etag", `"${asset.sha256}"`)
				.header("accept-ranges", "bytes");
			if (request.headers["if-none-match"] === `"${asset.sha256}"`) return reply.code(304).send();
			const range = rangeOf(request.headers.range, found.size);
			if (range === "invalid")
				throw new HttpProblem(416, "bad-range", "The file is shorter than that.", {
					headers: { "content-range": `bytes */${found.size}` },
				});
			if (range === null) return reply.header("content-length", found.size).send(createReadStream(file));
			reply
				.code(206)
				.header("content-range", `bytes ${range.start}-${range.end}/${found.size}`)
				.header("content-length", range.end - range.start + 1);
			return reply.send(createReadStream(file, range));
		},
	);
}
