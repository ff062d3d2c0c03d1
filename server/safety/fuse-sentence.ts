/** What a person is told when the daily limit stands in the way. */
import type { Limit } from "../store/ledger-store.ts";

/** One plain sentence without internals: which limit, when it resets, what becomes of the message. */
export function fuseSentence(
	admission: { limit: Limit; resetsAt: number; policy: "wait" | "decline" },
	locale: string,
	timezone: string,
): string {
	const chinese = locale.toLowerCase().startsWith("zh");
	const { limit } = admission;
	if (limit === "room")
		return chinese
			? "正在处理的请求占用了今天剩余的用量。您的消息已保留，稍后会回答。"
			: "Requests in progress hold what is left of today's usage. Your message is kept and will be answered shortly.";
	const format = { dateStyle: "medium", timeStyle: "short", hourCycle: "h23", timeZone: validZone(timezone) } as const;
	const when = new Intl.DateTimeFormat(chinese ? "zh-CN" : "en-GB", format).format(admission.resetsAt);
	const waits = admission.policy === "wait";
	if (chinese) {
		const what = {
			tokens: "今天的模型用量上限已用完",
			cost: "今天的费用上限已用完",
			share: "您今天的用量份额已用完",
			people: "今天留给后台任务的用量已用完",
		}[limit];
		return `${what}，将于 ${when}（${timezone}）重置。${waits ? "您的消息已保留，届时会回答。" : "请届时再发。"}`;
	}
	const what = {
		tokens: "Today's token limit is used up",
		cost: "Today's spending limit is used up",
		share: "Your share of today's usage is used up",
		people: "What background work may use today is used up",
	}[limit];
	return `${what}; it resets on ${when} (${timezone}). ${waits ? "Your message is kept and will be answered then." : "Please write again then."}`;
}

function validZone(timezone: string): string {
	try {
		new Intl.DateTimeFormat("en", { timeZone: timezone });
		return timezone;
	} catch {
		return "UTC";
	}
}
