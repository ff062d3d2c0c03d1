/** What files refuse, as an answer. */
import { PathRefused } from "../../workspace/names.ts";
import { WorkspaceConflict, WorkspaceRefused } from "../../workspace/workspace.ts";
import { HttpProblem } from "../problem.ts";

/** The file system's and the workspace's refusals in the words of HTTP. */
export async function answering<T>(work: () => Promise<T>): Promise<T> {
	try {
		return await work();
	} catch (error) {
		if (error instanceof PathRefused) throw new HttpProblem(400, "path-refused", error.message);
		if (error instanceof WorkspaceConflict)
			throw new HttpProblem(409, "version-conflict", `${error.message}: read it again and put your change into what stands there now.`, {
				errors: [{ path: "base", message: error.current === null ? "there is no such file" : `the version is ${error.current}` }],
			});
		if (error instanceof WorkspaceRefused) throw new HttpProblem(409, "not-writable", error.message);
		const { code } = error as NodeJS.ErrnoException;
		if (code === "ENAMETOOLONG" || code === "EINVAL") throw new HttpProblem(400, "path-refused", "The path is too long, or no path.");
		if (code === "ELOOP") throw new HttpProblem(400, "path-refused", "The path is a link that leads nowhere.");
		if (code === "ENOTDIR" || code === "EEXIST") throw new HttpProblem(409, "not-writable", "A file stands where a folder should be.");
		if (code === "EACCES" || code === "EPERM" || code === "EROFS")
			throw new HttpProblem(409, "not-writable", "The system does not allow it: look at the owner and the mode of the file.");
		throw error;
	}
}
