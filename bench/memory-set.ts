/**
 * The recall set: memories as they pile up in real use, and questions about some of them. Everything is made up. Questions use other
 * words than the memories, two-character words, names, dates, one language for a memory in the other, and have near-duplicates to be told apart from.
 */

export interface SetMemory {
	text: string;
	at: number;
}

export interface SetQuestion {
	question: string;
	/** Text of the memory that answers it. */
	answer: string;
	kind: "paraphrase" | "word" | "name" | "date" | "near-duplicate" | "cross-language" | "mixed";
}

const dayMs = 86_400_000;
const begin = Date.UTC(2026, 0, 5, 9, 0);

const asked: [SetQuestion["kind"], string, string][] = [
	// English
	["name", "Where does Priya live now?", "Priya told me she moved into a flat near the harbour in Rotterdam"],
	["paraphrase", "What is the wifi password at the cabin?", "The wireless network in the cabin uses the passcode pine-cone-88"],
	["near-duplicate", "What time does Jonas's train to Basel leave?", "Jonas takes the 07:52 train to Basel on Thursday"],
	["near-duplicate", "What time does Jonas's train to Bern leave?", "Jonas takes the 09:10 train to Bern on Thursday"],
	["paraphrase", "Which foods can Mateo not eat?", "Mateo is allergic to shellfish and walnuts, keep them out of dinner"],
	["name", "Who is Ingrid's thesis supervisor?", "Ingrid's thesis is supervised by Professor Halvorsen"],
	["date", "What happened on March 14?", "2026-03-14: signed the lease for the studio on Mill Road"],
	["paraphrase", "How much did we agree to pay for the kitchen?", "The kitchen renovation quote was accepted at 8,400 euros"],
	["word", "What did the vet say about the limp?", "Vet visit: the limp comes from a torn ligament, rest for six weeks"],
	["paraphrase", "Why did the team drop the old vendor?", "We stopped working with Brightline because three deliveries came late"],
	["name", "What does Olu want for his birthday?", "Olu mentioned he would love a secondhand telescope as a birthday present"],
	["paraphrase", "Which route did I pick for my morning run?", "I now run along the canal to the old mill and back every morning, 6 km"],
	["paraphrase", "What did the dentist recommend?", "Dentist said to switch to a soft brush and come back in September"],
	["name", "What instrument is Sofia learning?", "Sofia started cello lessons with a tutor from the conservatory"],
	["paraphrase", "How many people come to the wedding?", "Guest list for the wedding is closed at 84 guests"],
	["paraphrase", "Where are the spare keys?", "I hid the spare key under the blue flowerpot behind the shed"],
	["date", "When is the tax return due?", "The tax office wants the return by 31 July 2026"],
	["near-duplicate", "What is Tom's shoe size?", "Tom wears shoes in size 44"],
	["near-duplicate", "What is Tim's shoe size?", "Tim wears shoes in size 41"],
	["paraphrase", "What is wrong with the boiler?", "The heating engineer found a leaking valve in the boiler"],
	[
		"paraphrase",
		"Who will look after the plants in August?",
		"Mrs. Okafor next door promised to water the plants while we are away in August",
	],
	["word", "Which podcast did Rhea suggest?", "Rhea says I should listen to the podcast Deep Harbour"],
	["paraphrase", "Which database did we choose for the project?", "Decision: the project stores its data in PostgreSQL, not MongoDB"],
	["paraphrase", "What did I promise Kenji?", "I promised Kenji to review his grant proposal before Friday"],
	["paraphrase", "How is grandma after the operation?", "Grandma's hip surgery went well and she comes home on Sunday"],
	["name", "What is the name of Farah's startup?", "Farah founded a company called Loomlight that sells lamps"],
	["paraphrase", "How do I reset the alarm at the office?", "Office alarm: enter 2580 and hold the star key for five seconds"],
	["paraphrase", "Which book was Daniel reading on the beach?", "Daniel could not put down The Salt Road during our seaside holiday"],
	["near-duplicate", "When is the meeting with Acme?", "The Acme meeting was moved to Wednesday at 15:30"],
	["near-duplicate", "When is the meeting with Apex?", "The Apex meeting stays on Monday at 11:00"],
	// Chinese
	["word", "我平时喝什么茶？", "我只喝凤凰单丛，不喝绿茶"],
	["paraphrase", "女儿几点放学？", "小满每天下午四点二十放学，周五提前半小时"],
	["word", "公积金账号是多少", "公积金账号 3301 7788 0092，缴存单位是杭州分公司"],
	["name", "李建国的手机号是多少？", "李建国换了新号码：138-0013-5566"],
	["near-duplicate", "王芳的生日是哪天？", "王芳的生日是八月十七日"],
	["near-duplicate", "王芬的生日是哪天？", "王芬的生日是九月二日"],
	["paraphrase", "我对什么过敏？", "医生说我对青霉素和芒果过敏"],
	["date", "5月20日我们去了哪里？", "2026年5月20日，和小雨去西湖划船"],
	["word", "房租每月多少钱", "房东把房租涨到每月四千二，从六月开始"],
	["paraphrase", "车停在哪一层？", "车停在地下二层 C 区 108 号车位"],
	["name", "周老师教什么课？", "周老师是小满的数学老师，办公室在三楼"],
	["paraphrase", "为什么换掉了原来的供应商？", "因为连续三次延期交货，决定不再和宏达合作"],
	["paraphrase", "牙疼该找哪位大夫？", "口腔科的陈医生看得最好，要提前一周挂号"],
	["word", "护照什么时候到期", "护照有效期到 2028 年 3 月，签证页还剩六页"],
	["paraphrase", "妈妈喜欢什么花？", "母亲最爱栀子花，讨厌百合的香味"],
	["paraphrase", "发布时间最后定在哪天？", "会上决定：新版本推迟到十一月九号上线"],
	["word", "快递柜的取件码", "菜鸟驿站的快递取件码是 7-3-2051"],
	["paraphrase", "爸爸的血压药怎么吃？", "父亲的降压药早饭后吃一片，晚上不吃"],
	["name", "赵敏去了哪家公司？", "赵敏跳槽到了星河科技做产品总监"],
	["near-duplicate", "高铁票是几点的去南京的", "去南京的高铁是 G7005，早上八点零六分"],
	["near-duplicate", "去苏州的高铁几点？", "去苏州的高铁是 G7218，下午一点四十分"],
	["paraphrase", "健身房的卡放在哪？", "健身卡放在玄关第二个抽屉里"],
	["word", "猫粮买哪个牌子", "橘子只吃山野牌的猫粮，换别的就吐"],
	["paraphrase", "报销要找谁签字？", "差旅报销先给部门的孙姐签字，再交财务"],
	["paraphrase", "我们答应了客户什么？", "向宏图的客户承诺月底前交付第一批样机"],
	["paraphrase", "儿子最近迷上了什么？", "小川最近天天下围棋，想参加区里的比赛"],
	["word", "空调遥控器在哪", "卧室空调的遥控器在床头柜后面"],
	["paraphrase", "结婚纪念日想怎么过？", "小雨说结婚周年想去大理住三天"],
	["date", "七月一号开什么会？", "7月1日上午十点，季度预算评审"],
	["paraphrase", "装修用的什么颜色的漆？", "客厅墙面刷的是雾蓝色，色号 B-217"],
	// across the languages and mixed
	["cross-language", "我的狗叫什么？", "Our puppy is named Biscuit, a brown terrier"],
	["cross-language", "What is my wife's favourite dessert?", "老婆最喜欢的甜品是杨枝甘露"],
	["cross-language", "会议改到星期几了？就是和 Northwind 的", "The Northwind conference call moved to Tuesday"],
	["cross-language", "Where did we park the bicycle?", "自行车锁在图书馆西门的架子上"],
	["mixed", "staging 环境的 server 密码在哪", "staging server 的密码存在 1Password 的 DevOps 保险库"],
	["mixed", "Kubernetes 集群升级是谁负责", "K8s 集群 Kubernetes 升级由阿哲 owner，周三凌晨做"],
	["mixed", "iPhone 屏幕坏了去哪修", "iPhone 换屏去徐汇的直营店，要先预约 Genius Bar"],
	["mixed", "OKR 里 Q3 的目标是什么", "Q3 OKR：把 activation rate 提到 35%"],
	["cross-language", "医生让我每天走多少步？", "The doctor wants me to walk 9,000 steps a day"],
	["cross-language", "Which hospital was grandfather in?", "爷爷住在仁济医院东院心内科 12 床"],
	["mixed", "demo 用的 PPT 放哪了", "给 investor 的 demo PPT 在共享盘 /deck/2026Q2"],
	["cross-language", "How much is our mortgage each month?", "房贷每个月还 9,860 元，十五号扣款"],
	["mixed", "Alice 的 visa 什么时候到期", "Alice 的 visa 到期日是 2026-10-08，要提前三个月 renew"],
	["cross-language", "奶奶的项链在哪里？", "Grandmother's necklace is in the bank safe, box 118"],
];

const people = ["Priya", "Jonas", "Mateo", "Ingrid", "Olu", "Sofia", "Kenji", "Farah", "Daniel", "Rhea", "Tom", "Tim", "Nadia", "Lukas"];
const renmin = ["李建国", "王芳", "王芬", "赵敏", "小雨", "小满", "小川", "周老师", "孙姐", "阿哲", "陈晨", "刘洋"];
const english = [
	"{} asked whether the meeting could start a little earlier",
	"{} shared photos of the holiday by the sea",
	"{} is thinking about a new phone but has not decided",
	"Had lunch with {} at the noodle place, it was crowded",
	"{} called about the parcel, it still has not arrived",
	"{} complained about the noise from the building site",
	"Told {} that the report needs one more week",
	"{} likes long walks and strong coffee",
	"{} finished the first half of the online course",
	"{} missed the train and came by taxi",
	"{} forgot the umbrella at the office again",
	"Talked with {} about the football match last night",
	"{} wants to bake bread at the weekend",
	"{} said the project is going well but slowly",
	"{} is looking for a bigger flat with a garden",
	"{} recommended a film about mountains",
	"{} has a cold and stays in bed today",
	"{} paid back the 20 euros for the concert",
	"{} is saving money for a trip next summer",
	"{} moved the appointment to another day",
	"Lent {} the drill and the long ladder",
];
const chinese = [
	"{}问能不能把会议提前一点",
	"{}说最近工作很忙，周末也要加班",
	"和{}一起吃了火锅，排队等了一个小时",
	"{}想换一部新手机，还没决定",
	"{}的快递还没到，催了两次",
	"{}抱怨楼下装修太吵",
	"告诉{}报告还要再等一周",
	"{}喜欢爬山，也爱喝咖啡",
	"{}学完了网课的前半部分",
	"{}没赶上高铁，改坐大巴",
	"{}又把雨伞忘在办公室了",
	"和{}聊了昨晚的球赛",
	"{}想周末在家烤面包",
	"{}说项目进展顺利，就是慢",
	"{}在找带院子的房子",
	"{}推荐了一部关于大海的电影",
	"{}感冒了，今天请假在家休息",
	"{}把演唱会的门票钱还了",
	"{}在攒钱，打算明年夏天去旅行",
	"{}把预约改到了别的日子",
	"把电钻和梯子借给了{}",
];

export function recallSet(): { memories: SetMemory[]; questions: SetQuestion[] } {
	const texts: string[] = [];
	for (const [index, template] of english.entries())
		for (const [place, name] of people.entries()) if ((index + place) % 9 !== 0) texts.push(template.replace("{}", name));
	for (const [index, template] of chinese.entries())
		for (const [place, name] of renmin.entries()) if ((index + place) % 9 !== 0) texts.push(template.replace("{}", name));
	// The answers lie spread among the rest, in no order of the questions.
	const step = Math.floor(texts.length / asked.length);
	for (const [index, [, , answer]] of asked.entries()) texts.splice(((index * 31) % asked.length) * step + index, 0, answer);
	return {
		memories: texts.map((text, index) => ({ text, at: begin + Math.floor(index / 4) * dayMs + (index % 4) * 3 * 3_600_000 })),
		questions: asked.map(([kind, question, answer]) => ({ kind, question, answer })),
	};
}
