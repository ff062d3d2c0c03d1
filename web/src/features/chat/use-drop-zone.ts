import { useEffect, useState } from "react";

/** The whole window takes files while a composer is there. True while some hover over it. */
export function useDropZone(onFiles: (files: File[]) => void): boolean {
	const [over, setOver] = useState(false);
	useEffect(() => {
		let depth = 0;
		const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
		const enter = (event: DragEvent) => {
			if (!hasFiles(event)) return;
			depth += 1;
			setOver(true);
		};
		const leave = (event: DragEvent) => {
			if (!hasFiles(event)) return;
			depth = Math.max(0, depth - 1);
			if (depth === 0) setOver(false);
		};
		const hover = (event: DragEvent) => {
			if (hasFiles(event)) event.preventDefault();
		};
		const drop = (event: DragEvent) => {
			if (!hasFiles(event)) return;
			event.preventDefault();
			depth = 0;
			setOver(false);
			onFiles([...(event.dataTransfer?.files ?? [])]);
		};
		const handlers = { dragenter: enter, dragleave: leave, dragover: hover, drop } as const;
		for (const [name, handler] of Object.entries(handlers)) window.addEventListener(name as "drop", handler);
		return () => {
			for (const [name, handler] of Object.entries(handlers)) window.removeEventListener(name as "drop", handler);
		};
	}, [onFiles]);
	return over;
}
