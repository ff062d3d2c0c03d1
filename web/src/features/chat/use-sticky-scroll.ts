import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from "react";

/** Nearer than this to the end counts as "at the end". */
const slackPx = 48;

interface StickyScroll {
	box: RefObject<HTMLDivElement | null>;
	atEnd: boolean;
	onScroll(): void;
	toEnd(): void;
}

/**
 * Follows the newest words while the reader is at the end, stays put when they have scrolled away, and keeps the place when
 * earlier messages are put in front. `content` changes with every change of the text, `firstId` with earlier messages.
 */
export function useStickyScroll(content: unknown, firstId: string | null): StickyScroll {
	const box = useRef<HTMLDivElement>(null);
	const follow = useRef(true);
	const before = useRef<{ firstId: string | null; height: number }>({ firstId: null, height: 0 });
	const [atEnd, setAtEnd] = useState(true);

	const onScroll = useCallback(() => {
		const element = box.current;
		if (!element) return;
		const end = element.scrollHeight - element.scrollTop - element.clientHeight < slackPx;
		follow.current = end;
		setAtEnd(end);
	}, []);

	const toEnd = useCallback(() => {
		follow.current = true;
		box.current?.scrollTo({ top: box.current.scrollHeight });
	}, []);

	// biome-ignore lint/correctness/useExhaustiveDependencies: runs with the content
	useLayoutEffect(() => {
		const element = box.current;
		if (!element) return;
		const grown = element.scrollHeight - before.current.height;
		const older = before.current.firstId !== null && firstId !== before.current.firstId;
		before.current = { firstId, height: element.scrollHeight };
		if (older && !follow.current) element.scrollTop += grown;
		else if (follow.current) element.scrollTop = element.scrollHeight;
	}, [content, firstId]);

	// Late growth (a picture, a font, math): still at the end if it was.
	useLayoutEffect(() => {
		const element = box.current;
		const inner = element?.firstElementChild;
		if (!element || !inner) return;
		const observer = new ResizeObserver(() => {
			before.current = { ...before.current, height: element.scrollHeight };
			if (follow.current && !element.contains(document.activeElement)) element.scrollTop = element.scrollHeight;
		});
		observer.observe(inner);
		observer.observe(element);
		return () => observer.disconnect();
	}, []);

	return { box, atEnd, onScroll, toEnd };
}
