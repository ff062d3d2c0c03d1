/** Global set-up of the tests that run the built program: builds what is stale, as `npm test` does. */
import { setup as setUpClone } from "../../scripts/setup.mjs";

export async function setup(): Promise<void> {
	await setUpClone({ targets: ["server", "page"] });
}
