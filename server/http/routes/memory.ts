/** A person's memory: search, facts, bulk import, export, forgetting. Takes its own small dependencies, so that it can be built and tested alone. */
import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { z } from "zod";
import type { MemoryAdmin, Fact as MemoryFact } from "../../memory/admin.ts";
import type { Recalled } from "../../memory/memory.ts";
import { keyOfOwner } from "../../memory/scope.ts";
import { isInside } from "../../workspace/names.ts";
import { type App, wellFormed } from "../context.ts";
import { Fact, FactHistory, Forgotten, MemoryExport, MemoryHit, MemoryImportReport } from "../contract.ts";
import { HttpProblem, notFound } from "../problem.ts";
import { answering } from "./refusals.ts";
import { Id, limitOf, Nothing } from "./schemas.ts";

export interface MemoryRouteDeps {
	memory: Pick<
		MemoryAdmin,
		"search" | "importEntries" | "facts" | "factHistory" | "addFact" | "removeFact" | "forget" | "exportPerson" | "importWorkspace"
	>;
	/** The home, which is no other agent's workspace. */
	home: string;
	clock: { now(): number };
}

const mostEntries = 1000;
/** A thousand long entries in escaped JSON. */
const entriesBytes = 16_000_000;

/** The master asks here, so a call that names nobody is about the master's own memory; "everybody's" cannot be asked for. */
const Owner = z
	.string()
	.trim()
	.min(1)
	.max(200)
	.regex(/^[^\p{Cc}]*$/u, "must be a person's id or group:<id>");
const Whose = z.object({ person: Owner.default("master") });
const Text = (most: number) =>
	z
		.string()
		.max(most)
		.transform(wellFormed)
		.refine((text) => text.trim() !== "", "must not be blank");
/** An ISO instant, or ms since the epoch. */
const Instant = z
	.union([z.string().min(1).max(40), z.number()])
	.transform((value) => (typeof value === "number" ? value : Date.parse(value)))
	.refine((at) => Math.abs(at) <= 8.64e15, "must be an ISO 8601 instant, or ms since the epoch");

const iso = (at: number): string => new Date(at).toISOString();
const toFact = ({ id, text, source, at, scope, messageId, expiresAt }: MemoryFact): z.infer<typeof Fact> => ({
	id,
	text,
	source,
	at: iso(at),
	scope,
	messageId,
	expiresAt: expiresAt === null ? null : iso(expiresAt),
});
const toHit = ({ id, text, score, at, source }: Recalled): z.infer<typeof MemoryHit> => ({ id, text, score, at: iso(at), source });

export function memoryRoutes(app: App, deps: MemoryRouteDeps): void {
	const { memory, clock } = deps;
	let importing = false;

	app.get(
		"/api/v1/memory/search",
		{
			schema: {
				querystring: Whose.extend({ q: Text(4000), limit: limitOf(10, 50) }),
				response: { 200: z.object({ semantic: z.array(MemoryHit), keyword: z.array(MemoryHit) }) },
			},
		},
		async ({ query }) => {
			const found = await memory.search(keyOfOwner(query.person), query.q, query.limit);
			return { semantic: found.semantic.map(toHit), keyword: found.keyword.map(toHit) };
		},
	);

	app.post(
		"/api/v1/memory/entries",
		{
			bodyLimit: entriesBytes,
			schema: {
				body: z
					.array(
						z.object({ text: Text(20_000), at: Instant, person: Owner.optional(), source: z.string().trim().min(1).max(100).optional() }),
					)
					.min(1)
					.max(mostEntries),
				response: { 200: z.object({ stored: z.number().int() }) },
			},
		},
		async ({ body }) => memory.importEntries(body),
	);

	app.get(
		"/api/v1/memory/facts",
		{
			schema: {
				querystring: Whose.extend({
					/** The same under the facts' own word for it. */
					scope: Owner.optional(),
					/** `all`: what was believed before too. */
					state: z.enum(["active", "all"]).default("active"),
				}),
				response: { 200: z.object({ facts: z.array(z.union([FactHistory, Fact])) }) },
			},
		},
		async ({ query }) => {
			const key = keyOfOwner(query.scope ?? query.person);
			if (query.state === "active") return { facts: (await memory.facts(key)).map(toFact) };
			const rows = await memory.factHistory(key);
			return { facts: rows.map((row) => ({ ...toFact(row), state: row.state, supersededBy: row.supersededBy })) };
		},
	);

	const Added = Fact.extend({ outcome: z.enum(["new", "refreshed", "superseded"]) });
	app.post(
		"/api/v1/memory/facts",
		{
			schema: {
				body: z.object({
					text: Text(2000),
					scope: Owner.default("master"),
					expiresAt: Instant.nullish(),
					messageId: z.string().min(1).max(200).nullish(),
				}),
				/** 200: it was known, and is refreshed. */
				response: { 200: Added, 201: Added },
			},
		},
		async ({ body }, reply) => {
			const { text, scope, expiresAt = null, messageId = null } = body;
			if (expiresAt !== null && expiresAt <= clock.now()) throw new HttpProblem(400, "bad-time", "`expiresAt` is over already.");
			const { fact, outcome } = await answering(() => memory.addFact(keyOfOwner(scope), { text, expiresAt, messageId }));
			return reply.code(outcome === "refreshed" ? 200 : 201).send({ ...toFact(fact), outcome });
		},
	);

	app.delete("/api/v1/memory/facts/:id", { schema: { params: Id, response: { 204: Nothing } } }, async ({ params }, reply) => {
		if (!(await answering(() => memory.removeFact(params.id)))) throw notFound("fact");
		return reply.code(204).send(null);
	});

	const Target = z.string().min(1).max(200);
	app.post(
		"/api/v1/memory/forget",
		{
			schema: {
				body: z.union(
					[
						z.strictObject({ messageId: Target }),
						z.strictObject({ factId: Target }),
						z.strictObject({ entryId: Target }),
						z.strictObject({ person: Owner }),
					],
					"exactly one of `messageId`, `factId`, `entryId`, `person`",
				),
				response: { 200: Forgotten },
			},
		},
		async ({ body }) => {
			const report = await answering(() => memory.forget(body));
			if (report === null)
				throw notFound("messageId" in body ? "message" : "factId" in body ? "fact" : "entryId" in body ? "memory" : "person");
			return report;
		},
	);

	app.get("/api/v1/memory/export", { schema: { querystring: Whose, response: { 200: MemoryExport } } }, async ({ query }, reply) => {
		const files = await memory.exportPerson(keyOfOwner(query.person));
		const name = query.person.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 60);
		reply.header("content-disposition", `attachment; filename="memory-${name}.json"`);
		return { person: query.person, exportedAt: iso(clock.now()), files };
	});

	app.post(
		"/api/v1/memory/import",
		{ schema: { body: z.object({ folder: z.string().min(1).max(4000) }), response: { 200: MemoryImportReport } } },
		async ({ body }) => {
			const { folder } = body;
			if (!isAbsolute(folder) || folder.includes("\0"))
				throw new HttpProblem(400, "bad-folder", "`folder` must be a whole path on this machine.");
			if (isInside(deps.home, folder)) throw new HttpProblem(400, "bad-folder", "`folder` is in this agent's own home.");
			const found = await stat(folder).catch(() => null);
			if (!found?.isDirectory())
				throw new HttpProblem(404, "folder-not-found", "There is no such folder on this machine, or it cannot be read.");
			if (importing) throw new HttpProblem(409, "import-running", "An import is running; try again when it has ended.");
			importing = true;
			try {
				return await answering(() => memory.importWorkspace(folder));
			} finally {
				importing = false;
			}
		},
	);
}
