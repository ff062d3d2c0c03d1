/** Half-written messages survive a change of conversation and a reload of the tab. */
const prefix = "openlani.draft.";

export function readDraft(place: string): string {
	return sessionStorage.getItem(prefix + place) ?? "";
}

export function writeDraft(place: string, text: string): void {
	try {
		if (text === "") sessionStorage.removeItem(prefix + place);
		else sessionStorage.setItem(prefix + place, text);
	} catch {
		// No room: the draft lives in the field alone.
	}
}
