// npm run build: set up and build what is stale, without starting anything.
import { main, setup } from "./setup.mjs";

await main(() => setup({ targets: ["server", "page"] }));
