/** Parts of the page that are loaded when they are needed. */
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

const lookEveryMs = 1000;
/** A page that was loaded anew for a part this short a time ago would not find it the next time either. */
const tooSoonMs = 30_000;
const storageKey = "openlani.reloaded";

/**
 * A component in a file of its own. Where the file cannot be had (the daemon is away, or a new build has it under another name) the
 * page waits for the daemon and loads itself anew, once: a browser asks for a missing file only once in a page's life.
 */
// biome-ignore lint/suspicious/noExplicitAny: as in React's own type of lazy
export function part<T extends ComponentType<any>>(load: () => Promise<{ default: T }>): LazyExoticComponent<T> {
	return lazy(() => load().catch(loadAnew));
}

async function loadAnew(error: unknown): Promise<never> {
	const last = Number(sessionStorage.getItem(storageKey));
	if (Date.now() - last < tooSoonMs) throw error;
	while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
	sessionStorage.setItem(storageKey, String(Date.now()));
	window.location.reload();
	return new Promise(() => {});
}

async function isThere(): Promise<boolean> {
	try {
		return (await fetch("/healthz", { cache: "no-store" })).ok;
	} catch {
		return false;
	}
}
