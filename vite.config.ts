import type { ClientRequest, IncomingMessage } from "node:http";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type ProxyOptions } from "vite";

const target = process.env.OPENLANI_DEV ?? "http://127.0.0.1:7717";

/** Calls of the page that is served from its sources. For the daemon they come from its own page; those of other pages stay what they are. */
const daemon: ProxyOptions = {
	target,
	changeOrigin: true,
	configure(proxy) {
		const mend = (call: ClientRequest, { headers }: IncomingMessage) => {
			if (headers.origin === `http://${headers.host}`) call.setHeader("origin", target);
		};
		proxy.on("proxyReq", mend);
		proxy.on("proxyReqWs", mend);
	},
};

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
		proxy: { "/api": { ...daemon, ws: true }, "/healthz": daemon },
	},
});
