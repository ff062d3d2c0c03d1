/** Colours for code, loaded when a text first has a block that names its language. */
import rehypeHighlight from "rehype-highlight";

export const colourPlugins = {
	rehypePlugins: [[rehypeHighlight, { detect: false }]] as [[typeof rehypeHighlight, { detect: boolean }]],
};
