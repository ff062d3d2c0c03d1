import { describe, expect, it } from "vitest";
import { errorWords } from "../../../server/observe/alert-words.ts";

describe("a stored error, told to people", () => {
	it.each([
		["network: the connection failed: ECONNREFUSED", "the connection failed: ECONNREFUSED", "网络不通（ECONNREFUSED）"],
		["aborted: stopped while waiting", "stopped while waiting", "已停止"],
		["server: status 500 busy", "status 500 busy", "服务器出错（status 500 busy）"],
		["timeout: ", "no answer in time", "超时没有回应"],
		["something else: happened", "something else: happened", "something else: happened"],
		["constructor: x", "constructor: x", "constructor: x"],
	])("%s", (stored, en, zh) => {
		expect(errorWords(stored)).toEqual({ en, zh });
	});
});
