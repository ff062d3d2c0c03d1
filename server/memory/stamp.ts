import { sep } from "node:path";
import { stampAt } from "../workspace/stamp.ts";

/** `path` is plain and relative, as the memory names its files. Whether a file of the workspace has changed, cheaply: every message asks. The content itself is read through the workspace. */
export const createStamps =
	(root: string): ((path: string) => string) =>
	(path) =>
		stampAt(root + sep + path);
