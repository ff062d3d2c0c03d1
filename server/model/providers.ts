/** The providers we know, as data. A preset fills the base URL and what is odd about a server; every OpenAI-compatible server works as `custom`. */

export type ProviderId =
	| "openai"
	| "anthropic"
	| "google"
	| "xai"
	| "deepseek"
	| "openrouter"
	| "dashscope"
	| "moonshot"
	| "zhipu"
	| "siliconflow"
	| "ollama"
	| "llamacpp"
	| "lmstudio"
	| "custom";

/** What is odd about a server. What is not known beforehand is learned from its first refusal (openai/quirks.ts). */
export interface Quirks {
	/** The parameter that bounds the answer. */
	maxTokens: "max_tokens" | "max_completion_tokens";
	/** `send`: assistant messages with tool calls bring their `reasoning_content` along; `strip`: never. */
	reasoning: "send" | "strip";
	/** Takes `stream_options`. */
	streamOptions: boolean;
	/** Takes `response_format: {type: "json_object"}`. */
	jsonMode: boolean;
	temperature: boolean;
	/** Tool calls come with `extra_content` that must be sent back with them. */
	extraContent: boolean;
	/** Texts in one embeddings request. */
	embeddingBatch: number;
}

export interface ProviderPreset {
	id: ProviderId;
	name: string;
	/** With the path that stands before `/chat/completions`. "" for custom. */
	baseUrl: string;
	/** Environment variable that usually holds the key; null where none is needed. */
	keyVariable: string | null;
	/** Suggestions, the best first choice first; for local servers empty: they list their own. */
	models: string[];
	local: boolean;
	/** Where a person gets a key. */
	keyUrl: string | null;
	quirks: Quirks;
}

const USUAL: Quirks = {
	maxTokens: "max_tokens",
	reasoning: "strip",
	streamOptions: true,
	jsonMode: true,
	temperature: true,
	extraContent: false,
	embeddingBatch: 64,
};

const preset = (
	id: ProviderId,
	name: string,
	baseUrl: string,
	keyVariable: string | null,
	models: string[],
	keyUrl: string | null,
	quirks: Partial<Quirks> = {},
): ProviderPreset => ({
	id,
	name,
	baseUrl,
	keyVariable,
	models,
	local: keyUrl === null && id !== "custom",
	keyUrl,
	quirks: { ...USUAL, ...quirks },
});

export const PROVIDERS: readonly ProviderPreset[] = [
	preset(
		"openai",
		"OpenAI",
		"https://api.openai.com/v1",
		"OPENAI_API_KEY",
		["gpt-5.4-mini", "gpt-5.5", "gpt-5.4-nano"],
		"https://platform.openai.com/api-keys",
		{
			maxTokens: "max_completion_tokens",
			temperature: false,
		},
	),
	preset(
		"anthropic",
		"Anthropic",
		"https://api.anthropic.com/v1",
		"ANTHROPIC_API_KEY",
		["claude-sonnet-5", "claude-haiku-4-5", "claude-opus-5"],
		"https://platform.claude.com/settings/keys",
		{
			jsonMode: false,
		},
	),
	preset(
		"google",
		"Google Gemini",
		"https://generativelanguage.googleapis.com/v1beta/openai",
		"GEMINI_API_KEY",
		["gemini-3.5-flash", "gemini-3.1-pro-preview", "gemini-3.5-flash-lite"],
		"https://aistudio.google.com/apikey",
		{ extraContent: true },
	),
	preset("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", ["grok-4.3", "grok-4.6", "grok-4-fast-non-reasoning"], "https://console.x.ai"),
	preset(
		"deepseek",
		"DeepSeek",
		"https://api.deepseek.com",
		"DEEPSEEK_API_KEY",
		["deepseek-v4-flash", "deepseek-v4-pro"],
		"https://platform.deepseek.com/api_keys",
		{
			reasoning: "send",
		},
	),
	preset(
		"openrouter",
		"OpenRouter",
		"https://openrouter.ai/api/v1",
		"OPENROUTER_API_KEY",
		["deepseek/deepseek-v4-flash", "moonshotai/kimi-k2.6", "qwen/qwen3.6-plus", "z-ai/glm-5.2"],
		"https://openrouter.ai/keys",
	),
	preset(
		"dashscope",
		"Alibaba Cloud DashScope (Qwen)",
		"https://dashscope.aliyuncs.com/compatible-mode/v1",
		"DASHSCOPE_API_KEY",
		["qwen3.6-plus", "qwen3-max", "qwen-flash"],
		"https://bailian.console.aliyun.com/?tab=model#/api-key",
		{ embeddingBatch: 10 },
	),
	preset(
		"moonshot",
		"Moonshot AI (Kimi)",
		"https://api.moonshot.cn/v1",
		"MOONSHOT_API_KEY",
		["kimi-k2.6", "kimi-k2.5"],
		"https://platform.moonshot.cn/console/api-keys",
		{
			reasoning: "send",
			temperature: false,
		},
	),
	preset(
		"zhipu",
		"Zhipu AI (GLM)",
		"https://open.bigmodel.cn/api/paas/v4",
		"ZHIPUAI_API_KEY",
		["glm-5.2", "glm-5", "glm-4.7"],
		"https://open.bigmodel.cn/usercenter/apikeys",
	),
	preset(
		"siliconflow",
		"SiliconFlow",
		"https://api.siliconflow.cn/v1",
		"SILICONFLOW_API_KEY",
		["deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Pro", "deepseek-ai/DeepSeek-V3.2"],
		"https://cloud.siliconflow.cn/account/ak",
		{ embeddingBatch: 32 },
	),
	preset("ollama", "Ollama", "http://127.0.0.1:11434/v1", null, [], null),
	preset("llamacpp", "llama.cpp server", "http://127.0.0.1:8080/v1", null, [], null),
	preset("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", null, [], null),
	preset("custom", "OpenAI-compatible server", "", null, [], null),
];

/** The preset of that name; an unknown name is `custom`. */
export function providerOf(id: string): ProviderPreset {
	return PROVIDERS.find((provider) => provider.id === id) ?? (PROVIDERS.at(-1) as ProviderPreset);
}

/** The base URL without a slash at its end, or null when there is none or it is not http(s). */
export function baseUrlOf(settings: { provider: string; baseUrl: string | null }): string | null {
	const text = (settings.baseUrl || providerOf(settings.provider).baseUrl).replace(/\/+$/, "");
	try {
		const url = new URL(text);
		return url.protocol === "http:" || url.protocol === "https:" ? text : null;
	} catch {
		return null;
	}
}

/** Scheme, host and port: what shares a breaker and a back-off. */
export function originOf(baseUrl: string): string {
	return new URL(baseUrl).origin;
}

/** What `SetupInfo.providers` shows. */
export function listProviders(): {
	id: string;
	name: string;
	baseUrl: string;
	keyVariable: string | null;
	models: string[];
	local: boolean;
	keyUrl: string | null;
}[] {
	return PROVIDERS.map(({ id, name, baseUrl, keyVariable, models, local, keyUrl }) => ({
		id,
		name,
		baseUrl,
		keyVariable,
		models: [...models],
		local,
		keyUrl,
	}));
}

const DETECT_MS = 600;

/**
 * Asks the usual loopback ports of local servers what models they have. Never throws, never takes longer than a blink; a server that does not
 * answer, or answers something else, is not listed. `candidates` is for tests.
 */
export async function detectLocal(
	signal: AbortSignal,
	candidates: { provider: string; baseUrl: string }[] = PROVIDERS.filter((provider) => provider.local).map(({ id, baseUrl }) => ({
		provider: id,
		baseUrl,
	})),
): Promise<{ provider: string; baseUrl: string; models: string[] }[]> {
	const found = await Promise.all(
		candidates.map(async ({ provider, baseUrl }) => {
			try {
				const response = await fetch(`${baseUrl}/models`, {
					signal: AbortSignal.any([signal, AbortSignal.timeout(DETECT_MS)]),
					redirect: "error",
				});
				const body = response.ok ? ((await response.json()) as { data?: { id?: unknown }[] }) : null;
				if (!Array.isArray(body?.data)) return null;
				return { provider, baseUrl, models: body.data.flatMap((model) => (typeof model?.id === "string" ? [model.id] : [])).slice(0, 100) };
			} catch {
				return null;
			}
		}),
	);
	return found.filter((server) => server !== null);
}
