import { createHmac } from "node:crypto";
import type { AlertRow } from "../store/ledger-store.ts";

const limitMs = 10_000;

/**
 * Posts an alert to the owner's own address: `{id, kind, state, severity, message: {en, zh}, at}`, signed like every outgoing
 * webhook (`X-OpenLani-Signature: sha256=HEX` of the HMAC of the body). Throws when it was not taken.
 */
export async function postAlert(webhook: { url: string; secret: string }, row: AlertRow): Promise<void> {
	const { id, kind, state, severity, message } = row;
	const body = JSON.stringify({ id, kind, state, severity, message, at: new Date(row.lastAt).toISOString() });
	const signature = createHmac("sha256", webhook.secret).update(body).digest("hex");
	const response = await fetch(webhook.url, {
		method: "POST",
		headers: { "content-type": "application/json", "x-openlani-signature": `sha256=${signature}` },
		body,
		redirect: "error",
		signal: AbortSignal.timeout(limitMs),
	});
	await response.body?.cancel();
	if (!response.ok) throw new Error(`the alert webhook answered ${response.status}`);
}
