/** The name in IDENTITY.md's first heading or `name:` line; "Lani" where there is none. */
export function agentNameOf(identity: string): string {
	const named =
		/^\s*[-*]?\s*\**(?:name|名字|姓名)\**\s*[:：]\s*\**\s*(.+?)\s*\**\s*$/im.exec(identity)?.[1] ?? /^#\s+(.+?)\s*$/m.exec(identity)?.[1];
	return named && named.length <= 40 ? named : "Lani";
}
