/** What may be said about an uploaded file, purely: its kind by its bytes, its name without tricks, and how it is handed out. */

const RASTER = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);

/** The raster image type that the first bytes show, or null. */
export function sniffImage(data: Uint8Array): string | null {
	const text = Buffer.from(data.buffer, data.byteOffset, Math.min(data.byteLength, 16)).toString("latin1");
	if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
	if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
	if (text.startsWith("GIF87a") || text.startsWith("GIF89a")) return "image/gif";
	if (text.startsWith("RIFF") && text.slice(8, 12) === "WEBP") return "image/webp";
	if (text.slice(4, 12) === "ftypavif" || text.slice(4, 12) === "ftypavis") return "image/avif";
	if (text.startsWith("BM") && data.byteLength > 26) return "image/bmp";
	return null;
}

/** The type to keep: bytes are believed before words, and an image that is none is just a file. */
export function keptType(claimed: string | undefined, data: Uint8Array): string {
	const image = sniffImage(data);
	if (image !== null) return image;
	const type = (claimed ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
	if (!/^[a-z0-9!#$&^_.+-]{1,60}\/[a-z0-9!#$&^_.+-]{1,80}$/.test(type) || RASTER.has(type) || type.startsWith("multipart/"))
		return "application/octet-stream";
	return type;
}

/** A file's name alone: no folders, no control or direction characters, at most 255 characters. */
export function safeName(name: string | undefined): string {
	const last = (name ?? "").split(/[/\\]/).at(-1) ?? "";
	const plain = last.replace(/[\p{Cc}\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu, "").trim();
	const cut = Array.from(plain).slice(0, 255).join("");
	return cut === "" || cut === "." || cut === ".." ? "file" : cut;
}

/** Type and disposition for handing out: only raster images open in place; what a browser could run is nameless bytes. */
export function served(mimeType: string, name: string): { type: string; disposition: string } {
	const inline = RASTER.has(mimeType);
	const harmless =
		inline || /^(?:audio|video)\/[a-z0-9.+-]+$/.test(mimeType) || mimeType === "application/pdf" || mimeType === "application/zip";
	const type = harmless ? mimeType : mimeType === "text/plain" ? "text/plain; charset=utf-8" : "application/octet-stream";
	const ascii = name.replace(/[^\x20-\x7e]/g, "_").replace(/["\\%]/g, "_");
	const encoded = encodeURIComponent(name.replace(/\p{Surrogate}/gu, "_")).replace(
		/['()*]/g,
		(char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
	);
	return { type, disposition: `${inline ? "inline" : "attachment"}; filename="${ascii}"; filename*=UTF-8''${encoded}` };
}

/** One range of a `Range` header, or null when it is absent or not of the simple kind; `invalid` when it lies outside. */
export function rangeOf(header: string | undefined, bytes: number): { start: number; end: number } | "invalid" | null {
	const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
	if (!match || (match[1] === "" && match[2] === "")) return null;
	const start = match[1] === "" ? Math.max(0, bytes - Number(match[2])) : Number(match[1]);
	const end = match[1] === "" || match[2] === "" ? bytes - 1 : Math.min(Number(match[2]), bytes - 1);
	return start > end || start >= bytes ? "invalid" : { start, end };
}
