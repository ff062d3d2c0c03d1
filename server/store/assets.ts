import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Kysely, Selectable } from "kysely";
import type { Attachment, AttachmentKind } from "../../channels/channel.ts";
import { clean } from "./json.ts";
import type { AssetTable, Database } from "./schema.ts";
import type { AssetStore } from "./store.ts";

function kindOf(mimeType: string): AttachmentKind {
	const group = mimeType.split("/")[0];
	return group === "image" || group === "audio" || group === "video" ? group : "file";
}

const toAttachment = (row: Selectable<AssetTable>): Attachment => ({
	sha256: row.sha256,
	name: row.name,
	mimeType: row.mime_type,
	bytes: row.bytes,
	kind: row.kind as AttachmentKind,
});

/** An extension that says what the file is and nothing more; anything odd becomes none. */
function extensionOf(name: string): string {
	const found = /\.([A-Za-z0-9]{1,8})$/.exec(name);
	return found ? `.${found[1]?.toLowerCase()}` : "";
}

export function createAssets(db: Kysely<Database>, dir: string, clock: { now(): number }): AssetStore {
	const rowOf = (sha256: string) => db.selectFrom("assets").selectAll().where("sha256", "=", sha256).executeTakeFirst();

	async function write(file: string, data: Uint8Array): Promise<void> {
		await mkdir(dir, { recursive: true, mode: 0o700 });
		const target = join(dir, file);
		const have = await stat(target).catch(() => null);
		if (have?.size === data.byteLength) return;
		const temporary = join(dir, `.${randomUUID()}.part`);
		try {
			const handle = await open(temporary, "wx", 0o600);
			try {
				await handle.writeFile(data);
				await handle.sync();
			} finally {
				await handle.close();
			}
			await rename(temporary, target);
		} catch (error) {
			await unlink(temporary).catch(() => undefined);
			throw error;
		}
	}

	return {
		async put(data, info) {
			const sha256 = createHash("sha256").update(data).digest("hex");
			const known = await rowOf(sha256);
			const name = clean(info.name).slice(0, 255) || "file";
			const file = known?.file ?? `${sha256}${extensionOf(name)}`;
			await write(file, data);
			if (!known) {
				await db
					.insertInto("assets")
					.values({
						sha256,
						name,
						mime_type: info.mimeType,
						bytes: data.byteLength,
						kind: kindOf(info.mimeType),
						file,
						created_at: clock.now(),
					})
					.onConflict((conflict) => conflict.column("sha256").doNothing())
					.execute();
			}
			// The same bytes under another name keep the name they came with this time.
			return { sha256, name, mimeType: info.mimeType, bytes: data.byteLength, kind: kindOf(info.mimeType) };
		},
		async get(sha256) {
			const row = await rowOf(sha256);
			return row ? toAttachment(row) : null;
		},
		async read(sha256) {
			const row = await rowOf(sha256);
			if (!row) throw new Error(`asset ${sha256} is not stored`);
			return readFile(join(dir, row.file));
		},
		async path(sha256) {
			const row = await rowOf(sha256);
			return row ? join(dir, row.file) : null;
		},
	};
}
