/** Settings that are read once, at start. Every other one takes effect as soon as it is changed. */
export const restartKeys: readonly string[] = ["server.host", "server.port", "channels", "mcp", "safety.sandbox", "observe.otlp"];

export function needRestart(changed: string[]): string[] {
	return changed.filter((key) => restartKeys.some((fixed) => key === fixed || key.startsWith(`${fixed}.`)));
}
