/** Sentences of ours that people read, in Chinese and English. One plain sentence each (two where something is to be done), no internals, no secrets. */
import type { ModelErrorKind } from "../model/model.ts";
import type { GuardKind } from "./types.ts";

export type Language = "zh" | "en";

/** The language a person wrote in; where the text does not tell, that of the locale. */
export function languageOf(text: string, locale: string): Language {
	if (/\p{Script=Han}/u.test(text)) return "zh";
	if ((text.match(/[A-Za-z]{2,}/g)?.length ?? 0) >= 3) return "en";
	return locale.toLowerCase().startsWith("zh") ? "zh" : "en";
}

type Pair = Record<Language, string>;

const ERRORS: Record<ModelErrorKind | "internal", Pair> = {
	"bad-request": {
		en: "The model service rejected the request, so I could not answer; the log has the details.",
		zh: "模型服务拒绝了这次请求，我没能回答；详情见日志。",
	},
	"context-length": {
		en: "This conversation or its prompt files no longer fit into the model's context window. Shorten the message or the files, or choose a model with a larger window.",
		zh: "这段对话或提示文件超出了模型的上下文窗口。请缩短消息或文件，或换一个窗口更大的模型。",
	},
	auth: {
		en: "The model service did not accept the API key. Please check it in the settings.",
		zh: "模型服务不接受这个 API 密钥，请在设置里检查。",
	},
	payment: {
		en: "The model service says the account has no credit left. Please top it up or choose another model.",
		zh: "模型服务提示账户余额不足，请充值或换一个模型。",
	},
	"rate-limited": {
		en: "The model service is limiting requests right now. Please try again in a little while.",
		zh: "模型服务正在限流，请稍后再试。",
	},
	server: { en: "The model service has a fault right now. Please try again in a little while.", zh: "模型服务暂时出错，请稍后再试。" },
	network: {
		en: "I could not reach the model service. Please check the network or the service's address.",
		zh: "连不上模型服务，请检查网络或服务地址。",
	},
	timeout: { en: "The model service did not answer in time. Please try again.", zh: "模型服务没有及时回应，请再试一次。" },
	protocol: {
		en: "The model service sent an answer that could not be read. Please try again or choose another model.",
		zh: "模型服务返回了无法读取的内容，请再试一次或换一个模型。",
	},
	aborted: { en: "The answer was broken off. Please try again.", zh: "回答被中断了，请再试一次。" },
	fuse: {
		en: "The token or cost limit of today is reached, so I cannot call a model now. It resets at midnight, or the master can raise it for today.",
		zh: "今天的用量上限已到，现在不能再调用模型。零点会重置，主人也可以为今天提高上限。",
	},
	"no-model": { en: "No usable model is configured. Please set one up in the settings.", zh: "还没有可用的模型，请在设置里配置一个。" },
	internal: {
		en: "Something went wrong inside OpenLani, so I could not finish; the log has the details.",
		zh: "OpenLani 内部出错，没能完成；详情见日志。",
	},
};

export function errorSentence(kind: ModelErrorKind | "internal", language: Language): string {
	return ERRORS[kind][language];
}

const GUARDS: Record<GuardKind, Pair> = {
	"same-call": {
		en: "I stopped because I was repeating the same step without getting further.",
		zh: "我停下了：一直在重复同一个步骤，没有进展。",
	},
	alternating: {
		en: "I stopped because I was going round in circles between the same steps.",
		zh: "我停下了：一直在几个相同的步骤之间打转。",
	},
	"no-news": { en: "I stopped because my last steps brought nothing new.", zh: "我停下了：最近的步骤没有带来新的信息。" },
	"unknown-tool": {
		en: "I stopped because the model kept asking for tools that do not exist.",
		zh: "我停下了：模型一直在调用不存在的工具。",
	},
	failures: { en: "I stopped because my last steps all failed.", zh: "我停下了：最近的步骤全部失败。" },
	"empty-calls": {
		en: "I stopped because the model kept announcing tool calls without sending any. Please try again or choose another model.",
		zh: "我停下了：模型一直声称要调用工具却没有发出调用。请再试一次或换一个模型。",
	},
	steps: {
		en: "I stopped because the limit of steps for one task is reached; say “continue” to go on.",
		zh: "我停下了：已达到一次任务的步数上限；回复“继续”可以接着做。",
	},
	length: {
		en: "The answer was cut off by the output limit. Ask for a part of it, or raise maxOutputTokens in the settings.",
		zh: "回答因输出长度上限被截断。可以只问其中一部分，或在设置里提高 maxOutputTokens。",
	},
};

export function guardSentence(kind: GuardKind, language: Language): string {
	return GUARDS[kind][language];
}

const PLAIN = {
	stopped: { en: "Stopped.", zh: "已停止。" },
	empty: {
		en: "The model gave no answer, even when asked again. Please try again or choose another model.",
		zh: "模型没有给出回答，再问一次也没有。请再试一次或换一个模型。",
	},
	textCalls: {
		en: "The model wrote its tool call as plain text, so nothing was run. Please try again or choose a model that supports tools.",
		zh: "模型把工具调用写成了普通文字，所以什么都没有执行。请再试一次或换一个支持工具的模型。",
	},
	filtered: { en: "The model service withheld the answer because of its content filter.", zh: "模型服务的内容过滤拦下了这次回答。" },
} satisfies Record<string, Pair>;

export function plainSentence(name: keyof typeof PLAIN, language: Language): string {
	return PLAIN[name][language];
}

/** The prompt alone is larger than the window: says what is largest. */
export function tooLargeSentence(language: Language, chars: number, room: number, largest: string): string {
	return language === "zh"
		? `提示内容太大（${chars} 个字符，模型大约只能容纳 ${room} 个），没有调用模型。最大的部分是：${largest}。请缩短它，或换一个窗口更大的模型。`
		: `The prompt is too large (${chars} characters; the model takes about ${room}), so no model was called. The largest part is ${largest}. Shorten it or choose a model with a larger window.`;
}
