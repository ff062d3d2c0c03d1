import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { openHouse } from "./house.ts";

it("loads nothing at start that only some requests need", async () => {
	const house = await openHouse({ page: true });
	const loaded = Object.keys(createRequire(import.meta.url).cache);
	expect(loaded.some((file) => file.includes("/node_modules/fastify/"))).toBe(true);
	for (const name of ["ajv", "@fastify/ajv-compiler", "@fastify/swagger", "@fastify/multipart", "@fastify/static", "@node-rs/argon2"]) {
		expect(
			loaded.filter((file) => file.includes(`/node_modules/${name}/`)),
			name,
		).toEqual([]);
	}
	await house.close();
});
