/** Math, loaded when a text first has some. */
import "katex/dist/katex.min.css";
import rehypeKatex from "rehype-katex";
import remarkMath from "remark-math";

export const mathPlugins = {
	remarkPlugins: [[remarkMath, { singleDollarTextMath: false }]] as [[typeof remarkMath, { singleDollarTextMath: boolean }]],
	// `trust: false`: no links, pictures or styles out of a formula. `maxExpand` bounds macros that grow for ever.
	rehypePlugins: [[rehypeKatex, { trust: false, strict: false, maxExpand: 200, throwOnError: false, errorColor: "var(--soft)" }]] as [
		[typeof rehypeKatex, Record<string, unknown>],
	],
};
