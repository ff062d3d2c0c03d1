/** Words for people in place of the program's own: kinds of model errors, guards, stored errors. */
import type { GuardKind } from "../agent/types.ts";
import type { ModelErrorKind } from "../model/model.ts";

interface Both {
	en: string;
	zh: string;
}

const kinds: Record<ModelErrorKind, Both> = {
	"bad-request": { en: "it refused the request", zh: "请求被拒绝" },
	"context-length": { en: "the request was too long", zh: "请求太长" },
	auth: { en: "the key is not valid", zh: "密钥无效" },
	payment: { en: "no credit left", zh: "余额不足" },
	"rate-limited": { en: "too many requests", zh: "请求过于频繁" },
	server: { en: "server error", zh: "服务器出错" },
	network: { en: "no connection", zh: "网络不通" },
	timeout: { en: "no answer in time", zh: "超时没有回应" },
	protocol: { en: "an answer that cannot be read", zh: "回应无法读取" },
	aborted: { en: "stopped", zh: "已停止" },
	fuse: { en: "the daily limit", zh: "已到每日上限" },
	"no-model": { en: "no model", zh: "没有可用的模型" },
};

const guards: Record<GuardKind, Both> = {
	"same-call": { en: "the same call again and again", zh: "反复做同一个调用" },
	alternating: { en: "the same calls in turn", zh: "来回做同样的调用" },
	"no-news": { en: "nothing new was found", zh: "没有新的进展" },
	"unknown-tool": { en: "tools that are not there", zh: "调用不存在的工具" },
	failures: { en: "too many failures", zh: "失败太多" },
	"empty-calls": { en: "empty answers", zh: "没有内容的回答" },
	steps: { en: "too many steps", zh: "步数太多" },
	length: { en: "too long an answer", zh: "回答太长" },
};

export const kindWords = (kind: ModelErrorKind): Both => kinds[kind];
export const guardWords = (guard: string): Both => guards[guard as GuardKind] ?? { en: guard, zh: guard };

/** A stored error ("network: the connection failed: ECONNREFUSED") as people read it; anything else as it is. */
export function errorWords(stored: string): Both {
	const [, kind = "", detail = ""] = /^([a-z-]+): ([\s\S]*)$/.exec(stored) ?? [];
	if (!Object.hasOwn(kinds, kind)) return { en: stored, zh: stored };
	const { zh } = kinds[kind as ModelErrorKind];
	const code = /^the connection failed: (.+)$/.exec(detail)?.[1];
	// The program's own sentences say no more than the kind does; a server's words are kept, in whatever language they are.
	const said = code ?? (/^stopped\b/.test(detail) || detail === "" ? null : detail);
	return { en: detail === "" ? kinds[kind as ModelErrorKind].en : detail, zh: said === null ? zh : `${zh}（${said}）` };
}
