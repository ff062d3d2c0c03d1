import { useId } from "react";

/** The mark: a disc of sky over sea with a thin line of dawn. Decoration; the name stands beside it. */
export function Mark({ size = 26 }: { size?: number }) {
	const id = useId();
	return (
		<svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false" style={{ flex: "none", display: "block" }}>
			<defs>
				<clipPath id={`${id}d`}>
					<circle cx="16" cy="16" r="16" />
				</clipPath>
				<linearGradient id={`${id}s`} x1="0" y1="0" x2="0" y2="1">
					<stop offset="0" stopColor="#5b9bf5" />
					<stop offset="1" stopColor="#7fb3fa" />
				</linearGradient>
			</defs>
			<g clipPath={`url(#${id}d)`}>
				<path fill={`url(#${id}s)`} d="M0 0h32v16H0z" />
				<path fill="#2b76e5" d="M0 17h32v15H0z" />
				<path fill="#f2a07a" d="M0 15.4h32v2.2H0z" />
			</g>
		</svg>
	);
}
