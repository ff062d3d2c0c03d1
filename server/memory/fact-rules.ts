/** When two facts are the same, and when the newer one takes the older one's place. Pure. */
import { fold } from "./text/normalise.ts";

/** Signs that make another word of the one they stand at: C++, C#, A-, 50%, -5, $5. */
const signs = /((?<=[\p{L}\p{N}])(?:[+#%°]+|-(?![\p{L}\p{N}]))|(?<![\p{L}\p{N}])[-$€£¥](?=\d))|[^\p{L}\p{N}]/gu;

/** Letters and digits, folded, with the signs that belong to them: what is left when wording's dress is off. All of it where there is nothing else. */
export function normOf(text: string): string {
	const folded = fold(text);
	const bare = folded.replace(signs, (_all, sign?: string) => sign ?? " ");
	return (/[\p{L}\p{N}]/u.test(bare) ? bare : folded).replace(/\s+/g, " ").trim();
}

const no =
	/ no longer(?= )| (?:do|does|did|is|are|am|was|has|have|can|will|would) ?n t(?= )| (?:don|doesn|didn|isn|aren|wasn|hasn|haven|won|wouldn) t(?= )| (?:do|does|did) not(?= )| not(?= )| never(?= )|已经不再?|不再|不|没(?=有)/;
const kept: Record<string, string> = { isn: "is", aren: "are", wasn: "was", hasn: "has", haven: "have", is: "is", are: "are", am: "am" };

/** The verb of "the user likes" as in "I like". */
function spoken(verb: string): string {
	if (verb === "is") return "am";
	if (verb === "has") return "have";
	if (verb.endsWith("ies")) return `${verb.slice(0, -3)}y`;
	if (/(?:ch|sh|x|ss|zz|o)es$/.test(verb)) return verb.slice(0, -2);
	return /[^su]s$/.test(verb) ? verb.slice(0, -1) : verb;
}

/** "The user likes tea" and "I like tea" are one saying; so are, apart from their yes and no, "I like tea" and "I do not like tea any more". */
export function sayingOf(text: string): { saying: string; isNo: boolean } {
	const norm = normOf(text);
	const yes = norm.replace(no, (found) =>
		found.endsWith(" t") ? (kept[found.trim().split(" ")[0] ?? ""] ?? "").replace(/^(?=.)/, " ") : "",
	);
	const isNo = yes !== norm;
	const ended = isNo ? yes.replace(/ (?:any ?more|any longer)$/, "").replace(/了$/, "") : yes;
	const saying = ended
		.replace(/^(?:the )?(?:user|master) s /, "my ")
		.replace(/^(?:the )?(?:user|master) (\S+)/, (_all, verb: string) => `i ${spoken(verb)}`)
		.replace(/^i m /, "i am ")
		.replace(/^(?:用户|主人)/, "我");
	return { saying, isNo };
}

/** Attributes that have one value at a time. */
const attribute =
	/birthday|birth date|date of birth|(?:phone|mobile|room|seat|flight|order|account|passport|plate|door|house|bus|shirt|shoe|ring) ?(?:number|no|size|code)?|number|address|e ?mail|password|passcode|pin|nickname|surname|age|height|weight|blood type|size|salary|rent|budget|price|job|occupation|employer|company|boss|manager|doctor|dentist|landlord|hometown|city|time ?zone|favou?rite|deadline|due date|appointment|wifi|username|version|status|password|wife|husband|capital|生日|电话|手机|号码|地址|邮箱|密码|口令|小名|昵称|外号|年龄|身高|体重|血型|尺码|鞋码|工资|薪水|房租|预算|价格|职业|工作|公司|老板|上司|经理|医生|牙医|房东|老家|城市|时区|最喜欢|最爱|截止|期限|预约|航班|座位|车牌|用户名|版本|状态|名字|妻子|老婆|丈夫|老公|name/;

const links = [
	/^(.{2,60}?)\s+(?:is now|is|are|was|will be|has changed to|changed to|moved to|=)\s+(.+)$/,
	/^(.{2,40}?)(?:现在是|改成了?|改为|换成了?|变成了?|就是|是|为|叫做?|：|:)\s?(.+)$/,
];

/** Sentences whose beginning says what there can be only one of. */
const verbs: [RegExp, string][] = [
	[/^(.{0,40}?)\s?(?:now )?(?:lives?|living|resides?|moved) (?:in|at|to)\b/, "lives"],
	[/^(.{0,40}?)\s?(?:now )?works? (?:at|for|as)\b/, "works"],
	[/^(.{0,40}?)\s?(?:was|is) born (?:in|on)\b/, "born"],
	[/^(.{0,40}?)\s?is \d+ years old\b/, "age"],
	[/^(.{0,20}?)(?:现在)?(?:住在|搬到了?|搬去了?|居住在)/, "lives"],
	[/^(.{0,20}?)(?:现在)?在.{1,20}(?:工作|上班|任职)/, "works"],
	[/^(.{0,20}?)(?:出生于|出生在)/, "born"],
	[/^(.{0,20}?)今?年?\s?\d+\s?岁/, "age"],
];

const subject = (text: string): string =>
	text
		.replace(/^(?:the|that|please|currently|now)\s+/, "")
		.replace(/(?:现在|目前|的$)/g, "")
		.replace(/^(?:user|master) s /, "my ")
		.replace(/^(?:user|master)$/, "i")
		.replace(/^(?:用户|主人)/, "我")
		.replace(/\s+/g, " ")
		.trim();

/**
 * Names what the fact is the value of ("my birthday", "lives: anna"), or null for a fact that may stand beside others.
 * Facts of one person with the same topic contradict each other when they are not the same.
 */
export function topicOf(text: string): string | null {
	const plain = fold(text)
		.replace(/[’']s\b/g, " s")
		.replace(/[.!。！]+$/u, "")
		.replace(/\s+/g, " ")
		.trim();
	for (const [pattern, name] of verbs) {
		const found = pattern.exec(plain);
		if (found)
			return `${name}: ${subject(found[1] ?? "")
				.replace(/\b(?:has|have|is|are)$/, "")
				.trim()}`;
	}
	for (const pattern of links) {
		const found = pattern.exec(plain);
		if (!found) continue;
		const left = subject(found[1] as string);
		// "Anna is tall" and "Anna is kind" go together; "Anna's birthday is …" twice does not.
		if (attribute.test(left)) return `is: ${left}`;
		return /^.{1,20}(?:叫|叫做)$/.test(left) ? `name: ${left}` : null;
	}
	return null;
}
