/** What a key press in the composer looks like to us; a React or DOM keyboard event fits. */
export interface KeyPress {
	key: string;
	shiftKey: boolean;
	altKey: boolean;
	keyCode: number;
	isComposing: boolean;
	timeStamp: number;
}

/** After `compositionend`, WebKit still delivers the Enter that chose the candidate, sometimes as a plain Enter. */
const commitGraceMs = 60;

/**
 * True when this key press means "send". Enter alone sends, Shift or Alt makes a new line, and an Enter that belongs to an
 * input method never sends: not while composing, not with key code 229, and not right after `compositionEndedAt` (ms on the
 * event clock, or null).
 */
export function isSendKey(press: KeyPress, compositionEndedAt: number | null): boolean {
	if (press.key !== "Enter" || press.shiftKey || press.altKey) return false;
	if (press.isComposing || press.keyCode === 229) return false;
	return compositionEndedAt === null || press.timeStamp - compositionEndedAt > commitGraceMs;
}
