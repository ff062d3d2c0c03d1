import { join } from "node:path";
import { stampAt } from "../workspace/stamp.ts";

/** Whether a file of the workspace has changed, cheaply: every message asks. The content itself is read through the workspace. */
export const createStamps =
	(root: string): ((path: string) => string) =>
	(path) =>
		stampAt(join(root, path));
