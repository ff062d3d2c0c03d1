/** update_user, update_identity, update_agent_notes; versions of prompt files; propose_soul_change. */
import { WorkspaceRefused } from "../../workspace/workspace.ts";
import type { Tool, ToolContext, ToolResult } from "../tool.ts";
import { type MemoryToolOptions, ownerOf } from "./index.ts";

const promptFiles = ["SOUL.md", "Agent.md", "IDENTITY.md", "MASTER.md", "USER.md", "Fact.md"];
const longestLine = 600;
const failed = (text: string): ToolResult => ({ text, isError: true });
const line = {
	text: { type: "string", description: "one line; empty removes what `replaces` names" },
	replaces: { type: "string", description: "part of the old line, when it takes its place" },
};

function changeOf(args: Record<string, unknown>): { text: string; replaces?: string } | string {
	const text = String(args.text ?? "")
		.replace(/\s+/g, " ")
		.trim();
	const replaces = typeof args.replaces === "string" && args.replaces.trim() !== "" ? args.replaces : undefined;
	if (text === "" && replaces === undefined) return "`text` is empty.";
	if ([...text].length > longestLine) return `One line has at most ${longestLine} characters.`;
	return { text, ...(replaces ? { replaces } : {}) };
}

async function put(work: () => Promise<boolean>): Promise<ToolResult> {
	try {
		return { text: (await work()) ? "Done." : "Nothing changed: it says so already, or there is no such line." };
	} catch (error) {
		if (error instanceof WorkspaceRefused) return failed(error.message);
		throw error;
	}
}

const reasonOf = (context: ToolContext): string => `conversation ${context.conversationId}, turn ${context.turnId}`;

export function createPromptFileTools(
	options: MemoryToolOptions,
): Record<"updateUser" | "updateIdentity" | "updateAgentNotes" | "listVersions" | "readVersion" | "restore" | "proposeSoulChange", Tool> {
	const { memory, workspace } = options;
	const base = { capability: "settings", readOnly: false, effect: "outside" } as const;
	const fileOf = (args: Record<string, unknown>): string | null =>
		promptFiles.find((file) => file.toLowerCase() === String(args.file ?? "").toLowerCase()) ?? null;
	const noFile = failed(`\`file\` is one of ${promptFiles.join(", ")}.`);
	const file = { type: "string", enum: promptFiles };

	return {
		updateUser: {
			...base,
			capability: "memory",
			name: "update_user",
			description: "Put one line into what is known of a person (`me`: the speaker, `master`, or a person id).",
			parameters: { type: "object", properties: { person: { type: "string" }, ...line }, required: ["person", "text"] },
			async run(args, context) {
				const change = changeOf(args);
				if (typeof change === "string") return failed(change);
				const own = ownerOf(context);
				const asked = String(args.person ?? "me").trim();
				const person = asked === "" || asked === "me" ? own : asked;
				// In a group the group's section is the only one: what is written elsewhere would be known to everybody.
				if (person !== own && (context.tier !== "master" || context.groupId !== null))
					return failed("Here you may only change what is known of the one you speak with (`me`).");
				return put(() => memory.updatePerson(person, change, reasonOf(context)));
			},
		},
		updateIdentity: {
			...base,
			name: "update_identity",
			description: "Put one line into IDENTITY.md: who you are, how you like to be.",
			parameters: { type: "object", properties: line, required: ["text"] },
			async run(args, context) {
				const change = changeOf(args);
				return typeof change === "string" ? failed(change) : put(() => memory.updateIdentity(change, reasonOf(context)));
			},
		},
		updateAgentNotes: {
			...base,
			name: "update_agent_notes",
			description: "Put one line into Agent.md's `## Notes`: how you should work from now on.",
			parameters: { type: "object", properties: line, required: ["text"] },
			async run(args, context) {
				const change = changeOf(args);
				return typeof change === "string" ? failed(change) : put(() => memory.updateAgentNotes(change, reasonOf(context)));
			},
		},
		listVersions: {
			...base,
			readOnly: true,
			effect: "none",
			name: "list_prompt_versions",
			description: "Versions of a prompt file, newest first.",
			parameters: { type: "object", properties: { file }, required: ["file"] },
			async run(args) {
				const path = fileOf(args);
				if (!path) return noFile;
				const versions = (await workspace.versions(path)).slice(0, 30);
				if (versions.length === 0) return { text: "No versions yet." };
				return { text: versions.map((one) => `${one.version} ${new Date(one.at).toISOString()} by ${one.by}: ${one.reason}`).join("\n") };
			},
		},
		readVersion: {
			...base,
			readOnly: true,
			effect: "none",
			name: "read_prompt_version",
			description: "The text of one version of a prompt file.",
			parameters: { type: "object", properties: { file, version: { type: "string" } }, required: ["file", "version"] },
			async run(args) {
				const path = fileOf(args);
				if (!path) return noFile;
				const record = await workspace.readVersion(path, String(args.version ?? ""));
				return record ? { text: record.text } : failed("There is no such version; see list_prompt_versions.");
			},
		},
		restore: {
			...base,
			name: "restore_prompt",
			description: "Make an older version of a prompt file the present one. Not SOUL.md.",
			parameters: { type: "object", properties: { file, version: { type: "string" } }, required: ["file", "version"] },
			async run(args, context) {
				const path = fileOf(args);
				if (!path) return noFile;
				if (path === "SOUL.md") return failed("SOUL.md is changed by people only; use propose_soul_change.");
				try {
					const restored = await workspace.restore(path, String(args.version ?? ""), {
						by: "agent",
						reason: `restored; ${reasonOf(context)}`,
					});
					return restored
						? { text: `${path} is as it was in version ${args.version}.` }
						: failed("There is no such version; see list_prompt_versions.");
				} catch (error) {
					if (error instanceof WorkspaceRefused) return failed(error.message);
					throw error;
				}
			},
		},
		proposeSoulChange: {
			...base,
			name: "propose_soul_change",
			description: "Propose a new text of SOUL.md with your reason. A person decides.",
			parameters: { type: "object", properties: { text: { type: "string" }, reason: { type: "string" } }, required: ["text", "reason"] },
			async run(args, context) {
				const text = String(args.text ?? "").trim();
				const reason = String(args.reason ?? "")
					.replace(/\s+/g, " ")
					.trim();
				if (text === "" || reason === "") return failed("`text` and `reason` are needed.");
				if (text.length > 20_000) return failed("A soul has at most 20,000 characters.");
				const path = "proposals/SOUL.md";
				await workspace.write(
					path,
					`<!-- proposed ${new Date(context.now()).toISOString()}: ${reason.replaceAll("--", "- -")} -->\n${text}\n`,
					{ by: "agent", reason },
				);
				options.proposed?.(path, reason);
				return { text: `Proposed. It is in workspace/${path}; a person decides.` };
			},
		},
	};
}
