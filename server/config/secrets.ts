/** Which settings are secrets, how they are shown, and how a shown one that is put back becomes the kept one again. */
import { isPlain, matchesPath, type Plain } from "./defaults.ts";
import type { ConfigProblem } from "./environment.ts";
import { hasVariable, type Path } from "./expand.ts";

const secretNames =
	/(token|secret|password|passwd|passphrase|credential|apikeys?|accesskey|privatekey|encryptkey|aeskey|encodingaeskey|cookie|authorization)$/i;
/** Names that end like a secret but are none. */
const harmlessNames = /^(tokens|dailyTokens|contextTokens|maxOutputTokens|secrets)$/;
const secretPlaces = ["models.*.apiKeys.*", "mcp.servers.*.env.*", "mcp.servers.*.headers.*"];
const maskPattern = /^\*{8}.{0,4}$/s;

/** True when a text at this path must never be shown. */
export function isSecretPath(path: Path): boolean {
	if (secretPlaces.some((pattern) => matchesPath(pattern, path))) return true;
	const last = [...path].reverse().find((part) => typeof part === "string");
	return typeof last === "string" && secretNames.test(last.replace(/[-_]/g, "")) && !harmlessNames.test(last);
}

/** `********` and, of long ones, the last four characters: enough to tell two keys apart. */
export function maskSecret(value: string): string {
	if (value === "" || onlyVariables(value)) return value;
	return `********${value.length >= 16 ? value.slice(-4) : ""}`;
}

/** "${KEY}" and "Bearer ${KEY}" hold no secret themselves and are shown as they are written. */
function onlyVariables(value: string): boolean {
	return hasVariable(value) && /^(bearer|basic|token|bot)?$/i.test(value.replace(/\$\{[^}]*\}/g, "").trim());
}

export function isMasked(value: unknown): value is string {
	return typeof value === "string" && maskPattern.test(value);
}

/** Passwords inside addresses: `https://user:pass@host` is shown as `https://user:********@host`. */
const inAddress = /^([a-z][a-z0-9+.-]*:\/\/[^/@:\s]*:)([^@/\s]+)(@.*)$/is;

function shown(value: string, path: Path): string {
	if (isSecretPath(path)) return maskSecret(value);
	const address = inAddress.exec(value);
	return address && !onlyVariables(address[2] ?? "") ? `${address[1]}********${address[3]}` : value;
}

/** A copy in which every secret is masked. */
export function maskSecrets(value: unknown, path: Path = []): unknown {
	if (typeof value === "string") return shown(value, path);
	if (Array.isArray(value)) return value.map((child, index) => maskSecrets(child, [...path, index]));
	if (!isPlain(value)) return value;
	return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, maskSecrets(child, [...path, key])]));
}

/** Every secret text in a configuration: for the log's redaction. Short ones are left out, they would black out ordinary words. */
export function secretTexts(value: unknown, path: Path = []): string[] {
	if (typeof value === "string") {
		if (isSecretPath(path)) return value.length >= 6 ? [value] : [];
		const password = inAddress.exec(value)?.[2];
		return password ? [password] : [];
	}
	if (Array.isArray(value)) return value.flatMap((child, index) => secretTexts(child, [...path, index]));
	return isPlain(value) ? Object.entries(value).flatMap(([key, child]) => secretTexts(child, [...path, key])) : [];
}

/**
 * `value` with every masked text replaced by what is kept in `kept`: at the same place, entries of lists found by their id
 * first, keys in lists found by what they look like. What stands for nothing is named in `lost`, and so is a secret whose entry speaks
 * to another server now (`moved`): it was entered for the one before.
 */
export function restoreSecrets(value: unknown, kept: unknown, lost: Path[], path: Path = [], moved = false): unknown {
	if (typeof value === "string") {
		if (typeof kept === "string" && value === (moved ? kept : shown(kept, path))) return kept;
		if ((isMasked(value) && isSecretPath(path)) || inAddress.exec(value)?.[2] === "********") lost.push(path);
		return value;
	}
	if (Array.isArray(value)) {
		const before = Array.isArray(kept) ? kept : [];
		const free = new Set(before.keys());
		return value.map((child, index) => {
			const match = counterpart(child, before, index, free, path, value);
			free.delete(match);
			return restoreSecrets(child, before[match], lost, [...path, index], moved);
		});
	}
	if (!isPlain(value)) return value;
	const before: Plain = isPlain(kept) ? kept : {};
	const elsewhere = moved || (isPlain(kept) && addressOf(value) !== addressOf(kept));
	return Object.fromEntries(
		Object.entries(value).map(([key, child]) => [key, restoreSecrets(child, before[key], lost, [...path, key], elsewhere)]),
	);
}

/** Who gets to see an entry's secrets: its server, else the provider or program that stands for one; null where an entry names none. */
function addressOf(entry: Plain): string | null {
	const address = [entry.baseUrl, entry.url, entry.host].find((one) => typeof one === "string");
	if (typeof address === "string") return URL.canParse(address) ? new URL(address).origin : address;
	return [entry.provider, entry.command].find((one) => typeof one === "string") ?? null;
}

/** Index of the kept entry that a shown one stands for. */
function counterpart(child: unknown, before: unknown[], index: number, free: Set<number>, path: Path, all: unknown[]): number {
	if (typeof child === "string") {
		const looksLike = (at: number) => typeof before[at] === "string" && shown(before[at] as string, [...path, at]) === child;
		return free.has(index) && looksLike(index) ? index : ([...free].find(looksLike) ?? -1);
	}
	if (isPlain(child) && typeof child.id === "string") {
		const same = before.findIndex((entry) => isPlain(entry) && entry.id === child.id);
		if (same >= 0) return same;
		// A new id: an entry that was renamed stands for one whose id is gone.
		const gone = (at: number) => free.has(at) && !all.some((other) => isPlain(other) && other.id === (before[at] as Plain | undefined)?.id);
		return gone(index) ? index : ([...free].find(gone) ?? -1);
	}
	return index;
}

/** A secret put in the wrong place is quoted by the complaint about it: it is masked there too. */
export function withoutSecrets(problems: ConfigProblem[], secrets: string[]): ConfigProblem[] {
	const masked = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, () => maskSecret(secret)), text);
	return problems.map((problem) => ({ ...problem, key: masked(problem.key), message: masked(problem.message) }));
}
