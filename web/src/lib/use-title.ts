import { useEffect } from "react";

/** Names the window after the page that is shown, as a screen reader says it and a list of tabs shows it. */
export function useTitle(title: string): void {
	useEffect(() => {
		document.title = title;
		return () => {
			document.title = "OpenLani";
		};
	}, [title]);
}
