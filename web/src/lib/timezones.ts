/** The zones this browser knows, the wanted one always among them. */
export function timezones(wanted: string): string[] {
	const known = Intl.supportedValuesOf("timeZone");
	return [...new Set([wanted, "UTC", ...known])].filter(Boolean).sort();
}

export function browserTimezone(): string {
	return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}
