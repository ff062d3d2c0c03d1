/** now: the current time, in the person's zone and in UTC. */
import type { Tool } from "./tool.ts";

export function createNow(): Tool {
	return {
		name: "now",
		description: "Current date and time.",
		parameters: { type: "object", properties: {} },
		capability: "chat",
		readOnly: true,
		effect: "none",
		run: async (_args, context) => ({ text: describeTime(context.now(), context.timezone) }),
	};
}

/** `2026-11-30 Monday 15:04:05 Asia/Shanghai (UTC+08:00); 2026-11-30T07:04:05.000Z`. An unknown zone counts as UTC. */
export function describeTime(at: number, timezone: string): string {
	const part: Record<string, string> = {};
	for (const { type, value } of format(timezone).formatToParts(at)) part[type] = value;
	const offset = part.timeZoneName === "GMT" ? "UTC+00:00" : (part.timeZoneName ?? "").replace("GMT", "UTC");
	const zone = knownZone(timezone) ? timezone : "UTC";
	return `${part.year}-${part.month}-${part.day} ${part.weekday} ${part.hour}:${part.minute}:${part.second} ${zone} (${offset}); ${new Date(at).toISOString()}`;
}

function knownZone(timezone: string): boolean {
	try {
		new Intl.DateTimeFormat("en-US", { timeZone: timezone });
		return true;
	} catch {
		return false;
	}
}

function format(timezone: string): Intl.DateTimeFormat {
	return new Intl.DateTimeFormat("en-US", {
		timeZone: knownZone(timezone) ? timezone : "UTC",
		year: "numeric",
		month: "2-digit",
		day: "2-digit",
		weekday: "long",
		hour: "2-digit",
		minute: "2-digit",
		second: "2-digit",
		hourCycle: "h23",
		timeZoneName: "longOffset",
	});
}
