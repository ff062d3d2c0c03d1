/** What the gateway itself says to people, in their language. Nothing here shows internals. */

const texts = {
	poisoned: {
		en: "Working on this message stopped the service twice, so I have not tried it again. Please send it in another form, or look at the log.",
		"zh-CN": "处理这条消息时服务中断了两次,所以我没有再试。请换一种说法发送,或查看日志。",
	},
	internal: {
		en: "Something went wrong on my side while I worked on this. It is in the log; please try again.",
		"zh-CN": "处理时我这边出了问题,详情在日志里,请再试一次。",
	},
	blocked: {
		en: "(This answer was held back by the content filter.)",
		"zh-CN": "(这条回答被内容过滤器拦下了。)",
	},
} as const;

export type GatewaySentence = keyof typeof texts;

/** The sentence in the language of `locale`; English where we do not have it. */
export function sentence(which: GatewaySentence, locale: string): string {
	return texts[which][locale.toLowerCase().startsWith("zh") ? "zh-CN" : "en"];
}
