import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Builds the page into dist/page. Nothing is inlined as data: URLs, because the page's policy allows no fonts or scripts from there. */
export default defineConfig({
	root: fileURLToPath(new URL("web", import.meta.url)),
	plugins: [react()],
	build: {
		outDir: fileURLToPath(new URL("dist/page", import.meta.url)),
		emptyOutDir: true,
		target: "es2022",
		assetsInlineLimit: 0,
		modulePreload: { polyfill: false },
	},
	server: {
		host: "127.0.0.1",
		proxy: {
			"/api": { target: process.env.OPENLANI_DEV ?? "http://127.0.0.1:7717", ws: true },
			"/healthz": { target: process.env.OPENLANI_DEV ?? "http://127.0.0.1:7717" },
		},
	},
});
