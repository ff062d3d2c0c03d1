import { defineConfig } from "vitest/config";

/** Tests that run the built program: it is built first, and they come after the others. */
const WHOLE = ["tests/end-to-end/**/*.test.ts", "tests/project/start.test.ts"];

export default defineConfig({
	test: {
		// Two cores: more workers only make the timing of every test worse.
		maxWorkers: 2,
		restoreMocks: true,
		reporters: process.env.CI ? ["default", "github-actions"] : ["default"],
		projects: [
			{
				extends: true,
				test: {
					name: "unit",
					environment: "node",
					include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"],
					exclude: WHOLE,
					testTimeout: 15_000,
					hookTimeout: 30_000,
				},
			},
			{
				extends: true,
				test: {
					name: "end-to-end",
					environment: "node",
					include: WHOLE,
					globalSetup: ["tests/helpers/built.ts"],
					testTimeout: 120_000,
					hookTimeout: 120_000,
					sequence: { groupOrder: 1 },
				},
			},
		],
	},
});
