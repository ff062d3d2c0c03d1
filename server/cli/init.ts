/** `openlani init`: makes a home with its first configuration. Never overwrites anything. */
import { stat } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { isTimezone, type Language } from "../config/environment.ts";
import { nearest } from "../config/nearest.ts";
import { parseConfig } from "../config/parse.ts";
import { configPath } from "../config/service.ts";
import { parseSize } from "../config/units.ts";
import { listProviders } from "../model/providers.ts";
import { writeFileAtomic } from "../workspace/atomic.ts";
import { createWorkspace } from "../workspace/workspace.ts";
import { CliError, type Command, type Input, type Io, note, print, say } from "./command.ts";
import { needPlaceForHome } from "./places.ts";

interface Answers {
	locale: Language;
	timezone: string;
	provider: string | null;
	model: string | null;
	baseUrl: string | null;
	apiKey: string | null;
	dailyTokens: number | null;
}

export const command: Command = {
	name: "init",
	usage: "",
	about: { en: "make a home with a first configuration", zh: "建立数据目录和初始配置" },
	details: {
		en: "Asks in a terminal for what no flag says; --yes takes the defaults. Files that are there are left as they are.",
		zh: "在终端里会询问没有用选项给出的内容；--yes 全部用默认值。已有的文件不会改动。",
	},
	flags: {
		locale: { type: "text", value: "zh-CN|en", about: { en: "language", zh: "语言" } },
		timezone: { type: "text", value: "ZONE", about: { en: "time zone, such as Asia/Shanghai", zh: "时区，例如 Asia/Shanghai" } },
		provider: {
			type: "text",
			value: "NAME",
			about: { en: "who serves the model (none: the demo model)", zh: "模型服务商（不填则用演示模型）" },
		},
		model: { type: "text", value: "NAME", about: { en: "the model's name there", zh: "模型名称" } },
		"base-url": { type: "text", value: "URL", about: { en: "for a provider of your own", zh: "自定义服务的地址" } },
		"api-key": {
			type: "text",
			value: "KEY",
			about: { en: 'key, or "${VARIABLE}" to read it from the environment', zh: '密钥，或写 "${变量}" 从环境变量读取' },
		},
		"daily-tokens": { type: "text", value: "N", about: { en: "daily token limit (2M)", zh: "每日 token 上限（2M）" } },
		yes: { type: "switch", short: "y", about: { en: "ask nothing", zh: "不询问" } },
	},
	words: [0, 0],
	async run(io, input) {
		const { home } = io.environment;
		const path = configPath(home);
		const hasConfig = (await stat(path).catch(() => null)) !== null;
		const wishes = Object.keys(command.flags).filter((flag) => flag !== "yes" && input.text(flag) !== null);
		if (hasConfig && wishes.length > 0)
			throw new CliError(
				say(io, {
					en: `${path} is there already and is left as it is; change it there (--${wishes[0]} was not used).`,
					zh: `${path} 已存在，不会改动；请直接编辑它（--${wishes[0]} 没有生效）。`,
				}),
			);
		await needPlaceForHome(io);
		const answers = hasConfig ? null : await ask(io, input);
		const text = answers === null ? null : configText(answers);
		if (text !== null) {
			const { errors } = parseConfig(text, io.environment);
			if (errors.length > 0) throw new CliError(errors.map((error) => `${error.key}: ${error.message}`).join("\n"));
		}
		const log = { info: () => undefined, warn: (_event: string, data?: Record<string, unknown>) => note(io, JSON.stringify(data)) };
		const { made } = await createWorkspace({ home, clock: { now: () => Date.now() }, log }).ensure(
			answers?.locale ?? io.environment.language,
		);
		if (text !== null) await writeFileAtomic(path, text, { mode: 0o600 });
		if (hasConfig) print(io, say(io, { en: `${path} is there already: left as it is.`, zh: `${path} 已存在：没有改动。` }));
		print(
			io,
			say(io, {
				en: `Home: ${home} (${made.length + (hasConfig ? 0 : 1)} files and folders made)`,
				zh: `数据目录：${home}（新建了 ${made.length + (hasConfig ? 0 : 1)} 项）`,
			}),
		);
		print(
			io,
			say(io, {
				en: "Next: openlani serve, then open the link it prints; openlani doctor checks everything.",
				zh: "下一步：openlani serve，打开它给出的链接；openlani doctor 可以全面检查。",
			}),
		);
		return 0;
	},
};

async function ask(io: Io, input: Input): Promise<Answers> {
	const interactive = io.stdin.isTTY === true && !input.on("yes");
	const rl = interactive ? createInterface({ input: io.stdin, output: io.stderr }) : null;
	const providers = listProviders();
	const question = async (flag: string, text: { en: string; zh: string }, initial: string): Promise<string> => {
		const given = input.text(flag);
		if (given !== null || !rl) return given ?? initial;
		const answer = (await rl.question(`${say(io, text)}${initial === "" ? "" : ` [${initial}]`}: `, { signal: io.signal })).trim();
		return answer === "" ? initial : answer;
	};
	try {
		const locale = await question("locale", { en: "Language (zh-CN, en)", zh: "语言（zh-CN、en）" }, io.environment.language);
		if (locale !== "zh-CN" && locale !== "en")
			throw new CliError(say(io, { en: `--locale must be zh-CN or en, not "${locale}"`, zh: `语言只能是 zh-CN 或 en，不能是“${locale}”` }));
		const timezone = await question("timezone", { en: "Time zone", zh: "时区" }, io.environment.timezone);
		if (!isTimezone(timezone))
			throw new CliError(
				say(io, {
					en: `There is no time zone "${timezone}"; one looks like Asia/Shanghai`,
					zh: `没有“${timezone}”这个时区；写法如 Asia/Shanghai`,
				}),
			);
		const ids = providers.map(({ id }) => id);
		const providerText = await question(
			"provider",
			{ en: `Provider (${ids.join(", ")}; empty: demo model)`, zh: `模型服务商（${ids.join("、")}；留空用演示模型）` },
			"",
		);
		const provider = providers.find(({ id }) => id === providerText);
		if (providerText !== "" && !provider) {
			const meant = nearest(providerText, ids);
			throw new CliError(
				say(io, {
					en: `There is no provider "${providerText}"${meant ? `; did you mean ${meant}?` : `: ${ids.join(", ")}`}`,
					zh: `没有服务商“${providerText}”${meant ? `，是不是 ${meant}？` : `：${ids.join("、")}`}`,
				}),
			);
		}
		let model: string | null = null;
		let baseUrl: string | null = null;
		let apiKey: string | null = null;
		if (provider) {
			if (provider.id === "custom") baseUrl = (await question("base-url", { en: "Base URL", zh: "服务地址" }, "")) || null;
			else baseUrl = input.text("base-url");
			model = (await question("model", { en: "Model", zh: "模型" }, provider.models[0] ?? "")) || null;
			if (model === null) throw new CliError(say(io, { en: "--model is needed with --provider", zh: "指定服务商时还需要 --model" }));
			const variable = provider.keyVariable;
			apiKey = (await question("api-key", { en: "API key", zh: "API 密钥" }, variable ? `\${${variable}}` : "")) || null;
		}
		const tokens = await question("daily-tokens", { en: "Daily token limit", zh: "每日 token 上限" }, "");
		const dailyTokens = tokens === "" ? null : parseSize(tokens);
		if (tokens !== "" && dailyTokens === null)
			throw new CliError(
				say(io, {
					en: `--daily-tokens must be a number such as 500k or 2M, not "${tokens}"`,
					zh: `每日上限应写成 500k 或 2M，不能是“${tokens}”`,
				}),
			);
		return { locale, timezone, provider: provider?.id ?? null, model, baseUrl, apiKey, dailyTokens };
	} finally {
		rl?.close();
	}
}

/** JSON strings are YAML strings: whatever was typed stays a text. */
const quoted = (text: string) =>
	/^[A-Za-z][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off)$/i.test(text) ? text : JSON.stringify(text);

function configText(answers: Answers): string {
	const zh = answers.locale === "zh-CN";
	const lines = [
		zh
			? "# OpenLani 的设置。只写与默认值不同的项；改动会自动生效。"
			: "# Settings of OpenLani. Only what differs from the defaults needs to be here; changes take effect by themselves.",
		zh
			? "# 写错的键会指出行号，并继续使用上一份正确的设置。"
			: "# A wrong key is named with its line, and the last good settings stay in force.",
		"",
		`locale: ${answers.locale}`,
		`timezone: ${quoted(answers.timezone)}`,
	];
	if (answers.provider !== null && answers.model !== null) {
		lines.push("", "models:", "  - id: main", `    provider: ${answers.provider}`, `    model: ${quoted(answers.model)}`);
		if (answers.baseUrl !== null) lines.push(`    baseUrl: ${quoted(answers.baseUrl)}`);
		if (answers.apiKey !== null) lines.push(`    apiKeys: [ ${JSON.stringify(answers.apiKey)} ]`);
	} else {
		lines.push(
			"",
			zh ? "# 没有配置模型时由内置的演示模型回答。例如：" : "# Without a model the built-in demo model answers. For example:",
			"# models:",
			"#   - id: main",
			"#     provider: deepseek",
			"#     model: deepseek-chat",
			'#     apiKeys: [ "${DEEPSEEK_API_KEY}" ]',
		);
	}
	if (answers.dailyTokens !== null) lines.push("", `budget: { dailyTokens: ${answers.dailyTokens} }`);
	return `${lines.join("\n")}\n`;
}
