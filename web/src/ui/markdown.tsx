import { ExternalLink, ImageOff } from "lucide-react";
import { type ComponentProps, memo, type ReactNode, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { CopyButton } from "./copy-button.tsx";
import css from "./markdown.module.css";
import { hasColouredCode, hasMath, linkTarget, normalizeMath } from "./markdown-text.ts";

type Plugins = Pick<Options, "remarkPlugins" | "rehypePlugins">;

/** Half-open marks are closed while the text still grows; broken links are shown as their words. */
const closing = { linkMode: "text-only" as const };

/**
 * A model's text, safely: raw HTML is shown as text, links say where they go, pictures from elsewhere are not loaded.
 * Colours and math are loaded when a text first needs them.
 */
export const Markdown = memo(function Markdown({ text, streaming = false }: { text: string; streaming?: boolean }) {
	const source = normalizeMath(streaming ? remend(text, closing) : text);
	const math = useLazyPlugin(hasMath(source), loadMath);
	// Colours come at the end: they move nothing, and colouring every chunk anew costs too much.
	const colours = useLazyPlugin(!streaming && hasColouredCode(source), loadColours);
	return (
		<div className={css.prose}>
			<ReactMarkdown
				remarkPlugins={[remarkGfm, ...(math?.remarkPlugins ?? [])]}
				rehypePlugins={[...(math?.rehypePlugins ?? []), ...(colours?.rehypePlugins ?? [])]}
				components={components}
			>
				{source}
			</ReactMarkdown>
		</div>
	);
});

const loadMath = () => import("./markdown-math.ts").then((module) => module.mathPlugins);
const loadColours = () => import("./markdown-colours.ts").then((module) => module.colourPlugins);
const loaded = new Map<() => Promise<Plugins>, Plugins>();

function useLazyPlugin(needed: boolean, load: () => Promise<Plugins>): Plugins | null {
	const [, setReady] = useState(0);
	useEffect(() => {
		if (!needed || loaded.has(load)) return;
		let wanted = true;
		load().then(
			(plugins) => {
				loaded.set(load, plugins);
				if (wanted) setReady((count) => count + 1);
			},
			// Without the part (offline, mid-update) the text stays readable as it is.
			() => {},
		);
		return () => {
			wanted = false;
		};
	}, [needed, load]);
	return needed ? (loaded.get(load) ?? null) : null;
}

const components: Components = {
	a: ({ href, children }) => <Link href={href}>{children}</Link>,
	img: ({ src, alt }) => <Picture src={typeof src === "string" ? src : undefined} alt={alt ?? ""} />,
	pre: ({ children, node: _node, ...rest }) => <CodeBlock {...rest}>{children}</CodeBlock>,
	table: ({ children }) => <Table>{children}</Table>,
	input: ({ checked, type }) =>
		type === "checkbox" ? <input type="checkbox" checked={checked === true} readOnly tabIndex={-1} aria-hidden="true" /> : null,
};

function Link({ href, children }: { href: string | undefined; children: ReactNode }) {
	const { t } = useTranslation();
	const target = linkTarget(href, window.location.origin);
	if (target.kind === "none") return <span>{children}</span>;
	if (target.kind === "own") return <a href={target.href}>{children}</a>;
	const shown = textOf(children);
	const says = shown.includes(target.host);
	return (
		<a href={target.href} target="_blank" rel="noopener noreferrer nofollow" title={target.href}>
			{children}
			{!says && <span className={css.host}> {target.host}</span>}
			{target.kind === "web" && (
				<>
					{" "}
					<ExternalLink className={css.out} size={12} aria-label={t("markdown.newTab")} />
				</>
			)}
		</a>
	);
}

function Picture({ src, alt }: { src: string | undefined; alt: string }) {
	const { t } = useTranslation();
	const target = linkTarget(src, window.location.origin);
	if (target.kind === "own") return <img src={target.href} alt={alt} loading="lazy" className={css.picture} />;
	if (target.kind !== "web") return <span className={css.softly}>{alt}</span>;
	return (
		<a
			className={css.blocked}
			href={target.href}
			target="_blank"
			rel="noopener noreferrer nofollow"
			title={t("markdown.imageHint", { host: target.host })}
		>
			<ImageOff size={15} aria-hidden="true" />
			<span>
				{alt && <b>{alt}</b>} {t("markdown.image", { host: target.host })}
			</span>
		</a>
	);
}

function CodeBlock({ children, ...rest }: ComponentProps<"pre">) {
	const { t } = useTranslation();
	const language = languageOf(children);
	return (
		<figure className={css.code} aria-label={language ?? t("markdown.code")}>
			<figcaption>
				<span>{language ?? ""}</span>
				<CopyButton text={() => textOf(children).replace(/\n$/, "")} label={t("chat.copyCode")} iconOnly className={css.copy} />
			</figcaption>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
			<pre {...rest} tabIndex={0}>
				{children}
			</pre>
		</figure>
	);
}

function Table({ children }: { children: ReactNode }) {
	const { t } = useTranslation();
	return (
		// biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
		<section className={css.table} aria-label={t("markdown.table")} tabIndex={0}>
			<table>{children}</table>
		</section>
	);
}

function languageOf(children: ReactNode): string | null {
	if (typeof children !== "object" || children === null || !("props" in children)) return null;
	const name = (children.props as { className?: string }).className ?? "";
	return /language-([\w+#.-]+)/.exec(name)?.[1] ?? null;
}

function textOf(node: ReactNode): string {
	if (typeof node === "string" || typeof node === "number") return String(node);
	if (Array.isArray(node)) return node.map(textOf).join("");
	if (typeof node === "object" && node !== null && "props" in node) return textOf((node.props as { children?: ReactNode }).children);
	return "";
}
