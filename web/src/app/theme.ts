import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

const sky: MantineColorsTuple = [
	"#eaf2fe",
	"#d5e4fc",
	"#aacaf8",
	"#7fb0f6",
	"#5b9bf5",
	"#3f88ee",
	"#2b76e5",
	"#2266cc",
	"#1b57b0",
	"#144590",
];
const dawn: MantineColorsTuple = [
	"#fdf0e9",
	"#fadfd0",
	"#f6bf9f",
	"#f4a577",
	"#f2935f",
	"#ec8249",
	"#e8743b",
	"#cc5f29",
	"#b04f1f",
	"#8a3d17",
];

/** Mantine's dark greys in our tone, so that its fields and menus sit on our surfaces. */
const dark: MantineColorsTuple = [
	"#e6ebf2",
	"#c6cfdb",
	"#93a0b4",
	"#65738a",
	"#34425a",
	"#253041",
	"#1b2330",
	"#151b24",
	"#10161e",
	"#0c1117",
];

/** Latin from the system, Chinese from Noto or the system's own; nothing is fetched. */
const fonts =
	'-apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", "Noto Sans SC", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", system-ui, sans-serif';

export const theme = createTheme({
	primaryColor: "sky",
	primaryShade: { light: 6, dark: 4 },
	colors: { sky, dawn, dark },
	autoContrast: true,
	fontFamily: fonts,
	fontFamilyMonospace: 'ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "Noto Sans Mono", "Noto Sans Mono CJK SC", monospace',
	fontSizes: { xs: "12px", sm: "13.5px", md: "15px", lg: "17px", xl: "20px" },
	lineHeights: { xs: "1.5", sm: "1.55", md: "1.65", lg: "1.5", xl: "1.4" },
	headings: { fontFamily: fonts, fontWeight: "650" },
	defaultRadius: "md",
	radius: { xs: "6px", sm: "9px", md: "10px", lg: "14px", xl: "16px" },
	respectReducedMotion: true,
	cursorType: "pointer",
	components: {
		// White on the dark scheme's lighter sky would be too faint.
		Button: {
			vars: (_theme: unknown, props: { variant?: string; color?: string }) =>
				(props.variant ?? "filled") === "filled" && (props.color ?? "sky") === "sky"
					? { root: { "--button-color": "var(--on-accent)" } }
					: { root: {} },
		},
		Checkbox: { defaultProps: { radius: "xs" } },
		Modal: { defaultProps: { centered: true, transitionProps: { duration: 120 }, overlayProps: { backgroundOpacity: 0.35 } } },
		Drawer: { defaultProps: { transitionProps: { duration: 140 }, overlayProps: { backgroundOpacity: 0.3 } } },
		Menu: { defaultProps: { transitionProps: { duration: 80 }, shadow: "md" } },
		Tooltip: { defaultProps: { openDelay: 400, transitionProps: { duration: 80 } } },
	},
});

const ours = {
	"--mantine-color-body": "var(--surface)",
	"--mantine-color-text": "var(--text)",
	"--mantine-color-dimmed": "var(--soft)",
	"--mantine-color-placeholder": "var(--faint)",
	"--mantine-color-default": "var(--surface)",
	"--mantine-color-default-hover": "var(--hover)",
	"--mantine-color-default-color": "var(--text)",
	"--mantine-color-default-border": "var(--edge)",
	"--mantine-color-anchor": "var(--accent-text)",
	"--mantine-color-error": "var(--danger)",
};

/** Mantine's own variables follow ours (tokens.css), so its parts look like the rest in both schemes. */
export const variables: CSSVariablesResolver = () => ({ variables: {}, light: ours, dark: ours });
