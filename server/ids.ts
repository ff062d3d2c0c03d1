import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";

const idBytes = 16;
const drawnTogether = 256;

/**
 * Makes sortable ids (UUIDv7, RFC 9562) that grow from call to call. The randomness of many is drawn at once: asking the system for each
 * costs more than the rest of an id.
 */
export function createIds(now: () => number = Date.now): () => string {
	const pool = new Uint8Array(idBytes * drawnTogether);
	let used = pool.length;
	let msecs = 0;
	let seq = 0;
	return () => {
		if (used === pool.length) {
			randomFillSync(pool);
			used = 0;
		}
		const random = pool.subarray(used, used + idBytes);
		used += idBytes;
		const at = now();
		if (at > msecs) {
			msecs = at;
			// Not the whole range: there is room to count up in the same millisecond.
			seq = new DataView(random.buffer, random.byteOffset).getUint32(6) >>> 1;
		} else {
			seq += 1;
			if (seq > 0xffffffff) {
				seq = 0;
				msecs += 1;
			}
		}
		return v7({ random, msecs, seq });
	};
}
