/** Words that say nothing about what is looked for. Kept short: a word that carries meaning in some question must not be here. */

const english =
	"a an the this that these those i me my mine we us our ours you your yours he him his she her hers it its they them their theirs " +
	"be am is are was were been being do does did done have has had having will would shall should can could may might must " +
	"to of in on at by for from with about into over under after before between out up down off than then as so too very just also still even only " +
	"and or but if because while not no nor yes " +
	"what which who whom whose when where why how there here any some all each every both few more most other such own same " +
	"say tell said told know remember please let get got go thing something anything again ever much many long kind sort name call " +
	"s t d ll re ve m don didn doesn isn wasn aren won couldn wouldn shouldn " +
	"hi hello hey ok okay thanks thank bye yeah oh well";

const chinese =
	"的 了 是 在 有 和 与 或 就 都 也 还 又 很 太 更 最 不 没 没有 这 那 这个 那个 这些 那些 哪 哪个 哪些 哪里 哪儿 谁 什么 怎么 怎样 怎么样 为什么 多少 几 几个 几点 " +
	"吗 呢 吧 啊 呀 嘛 哦 嗯 哈 我 你 您 他 她 它 我们 你们 他们 她们 咱们 自己 把 被 给 对 从 到 向 让 使 跟 比 会 能 可以 可 要 想 应该 得 着 过 地 之 其 而 但 但是 因为 所以 如果 " +
	"一 个 一个 一下 一些 些 次 里 上 下 中 时 时候 的话 说 说过 告诉 记得 知道 请 请问 帮 叫 叫做 是不是 有没有 来着 之前 以前 后来 现在 然后 东西 事 事情 人 年 月 日 号 天 点 们 位 名 去 来 做 用 " +
	"名字 名称 叫 哪天 哪位 哪家 几号 哪一 该 最后 最近 平时 你好 谢谢 好的 嗨 再见";

export const stopWords: ReadonlySet<string> = new Set(`${english} ${chinese}`.split(" "));
