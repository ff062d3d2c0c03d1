/** Headers of every answer. Made once: they do not depend on the request. No HSTS and no upgrade to https: a home network speaks plain http. */

const POLICY = {
	"default-src": "'self'",
	"script-src": "'self'",
	"script-src-attr": "'none'",
	// The component library puts its variables into a style element; styles cannot run anything.
	"style-src": "'self' 'unsafe-inline'",
	"img-src": "'self' data: blob:",
	"media-src": "'self' blob:",
	"font-src": "'self' data:",
	"connect-src": "'self'",
	"worker-src": "'self'",
	"manifest-src": "'self'",
	"object-src": "'none'",
	"frame-src": "'none'",
	"frame-ancestors": "'none'",
	"base-uri": "'none'",
	"form-action": "'self'",
};

function policy(parts: Record<string, string>): string {
	return Object.entries(parts)
		.map(([name, value]) => (value === "" ? name : `${name} ${value}`))
		.join("; ");
}

export const SECURITY_HEADERS: Record<string, string> = {
	"content-security-policy": policy(POLICY),
	"cross-origin-opener-policy": "same-origin",
	"cross-origin-resource-policy": "same-origin",
	"origin-agent-cluster": "?1",
	"permissions-policy": "camera=(), geolocation=(), payment=(), usb=(), microphone=(self)",
	"referrer-policy": "no-referrer",
	"x-content-type-options": "nosniff",
	"x-dns-prefetch-control": "off",
	"x-frame-options": "DENY",
	"x-permitted-cross-domain-policies": "none",
};

/** For bytes that somebody else made: nothing in them runs, loads or frames, even when opened by themselves. */
export const ASSET_POLICY = policy({ "default-src": "'none'", "style-src": "'unsafe-inline'", sandbox: "", "frame-ancestors": "'none'" });
