// The daemon from its sources, as `npm run dev` starts it (with tsx loaded).
import { fileURLToPath, pathToFileURL } from "node:url";
import { ignoreEchoedSignals, stopWithParent } from "./signals.mjs";

ignoreEchoedSignals();
stopWithParent();
const entry = fileURLToPath(new URL("../../server/main.ts", import.meta.url));
process.argv[1] = entry;
await import(pathToFileURL(entry).href);
