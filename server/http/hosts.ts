/**
 * Who may be addressed and from where: the Host and Origin allow-list, purely. A foreign Host means that a name was bent to our
 * address (DNS rebinding); a foreign Origin means that another site's page is calling.
 */

export interface Listening {
	/** Port we listen on; null when we do not listen (requests are injected), then the port is not compared. */
	port: number | null;
	/** Local address of the connection the request came in on. */
	localAddress: string | null;
	/** Name that was configured to listen on. */
	listenHost: string | null;
	publicUrl: string | null;
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

interface Place {
	host: string;
	port: number;
}

/** `host[:port]` in its one canonical form, or null when it is none. */
function parseHost(value: string, defaultPort: number): Place | null {
	if (!/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?$/.test(value)) return null;
	try {
		const url = new URL(`http://${value}`);
		const port = /:(\d{1,5})$/.exec(value.replace(/^\[[^\]]*\]/, ""))?.[1];
		return { host: unmapped(url.hostname), port: port === undefined ? defaultPort : Number(port) };
	} catch {
		return null;
	}
}

/** An IPv4-mapped IPv6 address as the IPv4 address it is. */
function unmapped(hostname: string): string {
	const mapped = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname);
	if (!mapped) return hostname;
	const [high, low] = [Number.parseInt(mapped[1] ?? "", 16), Number.parseInt(mapped[2] ?? "", 16)];
	return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** A socket's address as it stands in a URL: brackets for IPv6, no zone. */
function urlHost(address: string): string {
	const bare = address.replace(/%.*$/, "").replace(/^\[|\]$/g, "");
	return parseHost(bare.includes(":") ? `[${bare}]` : bare, 0)?.host ?? bare.toLowerCase();
}

function publicPlace(publicUrl: string | null): { origin: string; place: Place } | null {
	if (!publicUrl || !URL.canParse(publicUrl)) return null;
	const url = new URL(publicUrl);
	const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
	return { origin: url.origin, place: { host: unmapped(url.hostname), port } };
}

function isOurs(place: Place, where: Listening): boolean {
	if (where.port !== null && place.port !== where.port) return false;
	if (LOOPBACK.has(place.host)) return true;
	if (where.localAddress && place.host === urlHost(where.localAddress)) return true;
	return where.listenHost !== null && place.host === urlHost(where.listenHost);
}

/** True when `Host` names us. */
export function hostAllowed(host: string | undefined, where: Listening): boolean {
	if (!host) return false;
	const open = publicPlace(where.publicUrl);
	if (open) {
		// Behind a proxy the scheme's own port is left out of Host.
		const seen = parseHost(host, open.place.port);
		if (seen && seen.host === open.place.host && seen.port === open.place.port) return true;
	}
	const place = parseHost(host, 80);
	return place !== null && isOurs(place, where);
}

/** True when a page of this origin is our own page. `null` and every other scheme is foreign. */
export function originAllowed(origin: string, where: Listening): boolean {
	const open = publicPlace(where.publicUrl);
	if (open && origin.toLowerCase() === open.origin) return true;
	if (!origin.toLowerCase().startsWith("http://")) return false;
	const place = parseHost(origin.slice("http://".length), 80);
	return place !== null && isOurs(place, where);
}
