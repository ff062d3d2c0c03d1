import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readEnvironment } from "../../../server/config/environment.ts";
import { type ConfigService, createConfigService } from "../../../server/config/service.ts";

export interface TestHome {
	home: string;
	path: string;
	logged: { event: string; data?: Record<string, unknown> }[];
	write(text: string | Uint8Array): Promise<void>;
	service(env?: Record<string, string>, options?: { watch?: boolean; pollMs?: number }): Promise<ConfigService>;
	remove(): Promise<void>;
}

export async function createTestHome(): Promise<TestHome> {
	const home = await mkdtemp(join(tmpdir(), "lani-config-"));
	const path = join(home, "config.yaml");
	const logged: TestHome["logged"] = [];
	const open: ConfigService[] = [];
	return {
		home,
		path,
		logged,
		write: (text) => writeFile(path, text),
		async service(env = {}, options = {}) {
			const log = (event: string, data?: Record<string, unknown>) => void logged.push(data ? { event, data } : { event });
			const service = await createConfigService({
				environment: readEnvironment({ TZ: "Asia/Shanghai", ...env, OPENLANI_HOME: home }),
				clock: { now: () => 1_800_000_000_000 },
				log: { info: log, warn: log },
				watch: options.watch ?? false,
				...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
			});
			open.push(service);
			// Whatever the start left to be done is done then.
			await service.reload();
			return service;
		},
		async remove() {
			for (const service of open) await service.close();
			await rm(home, { recursive: true, force: true });
		},
	};
}

/** The example of the contract: every section, every known channel. */
export const wholeConfig = `# my agent
server: { host: 127.0.0.1, port: 7717, publicUrl: null }
locale: zh-CN            # or en
timezone: Asia/Shanghai
models:
  - id: main             # the cheap one
    provider: deepseek
    model: deepseek-v4-flash
    baseUrl: null
    apiKeys: [ "\${DEEPSEEK_API_KEY}", "sk-written-in-the-file-9876" ]   # two keys
    kind: text
    contextTokens: 128k
    price: { input: 0.1, cachedInput: 0.01, output: 0.2, currency: USD }
    limits: { connectMs: 5000, firstByteMs: 120000, idleMs: 60000, totalMs: 600000, maxOutputTokens: 8192 }
roles: { chat: [main], small: main, critique: main, vision: null, image: null, tts: null, stt: null, embedding: null }
budget: { dailyTokens: 2000000, dailyCost: null, warnAt: [0.5, 0.8], reserveForPeople: 0.2 }
memory: { exchanges: 8, compress: 4, summaryLines: 12, archive: 4, recallSemantic: 2, recallKeyword: 2 }
agent: { maxSteps: 60, maxRounds: 3, plan: auto, critique: { mode: auto, maxRounds: 3 } }
heartbeat: { enabled: true, every: 30m, activeHours: "08:00-23:00", freeTimePerDay: 2, deliverTo: null }
channels:
  telegram:
    - id: tg
      token: "\${TELEGRAM_TOKEN}"
      apiRoot: https://api.telegram.org
      mode: poll
      streaming: final
      masters: [12345678901234567890]
      groups: { "-100123": { trigger: all } }
  onebot:
    - id: qq
      mode: reverse
      url: ws://127.0.0.1:3001
      accessToken: "one-bot-secret-word"
      paceMs: 1000
      heartbeatTimeoutS: 90
  email:
    - id: mail
      address: lani@example.test
      imap: { host: 127.0.0.1, port: 1143, security: none, user: lani, password: "mail-password-in-clear", mailbox: INBOX }
      smtp: { host: 127.0.0.1, port: 1587, security: none, user: lani, password: "mail-password-in-clear" }
      authservId: mx.example.test
      pollS: 60
      minReplyIntervalS: 60
  discord:
    - id: dc
      botToken: discord-bot-token-value
      applicationId: "42"
  webhook:
    - id: hook
      secret: "hook-secret-in-clear"
      url: https://example.test/out

people: { pairingMinutes: 60, dailyShare: { stranger: 20000, known: 200000, group: 100000 } }

mcp:
  servers:
    files: { command: npx, args: [mcp-server-filesystem, .], env: { KEY: mcp-env-secret-value }, enabled: true, approval: ask, sandbox: auto, timeoutS: 60 }
    remote: { url: "https://example.test/mcp", headers: { Authorization: "Bearer mcp-header-secret" }, approval: never }

safety:
  sandbox: auto
  sandboxLimits: { timeoutS: 60, cpuS: 60, memoryMb: 512, processes: 64, fileMb: 50, outputKb: 64, network: false }
  egress: { allow: ["127.0.0.1:8080"], maxBytes: 10000000, timeoutS: 20, maxRedirects: 5 }
  filter:
    lists: { house: { file: filter/house.txt } }
    profiles:
      private: { lists: { house: mask }, secrets: mask, cards: off, ids: off, phones: off, emails: off }
  approvals:
    expiresS: 900
    automatic: deny
    tools: { run_shell: ask, "files__*": ask }
  permissions:
    trusted: [chat, memory]

web: { search: { provider: searxng, url: null, apiKey: search-key-in-clear } }

extensions:
  functions: { approval: ask }
  lessons: { perTurn: 5, perConversation: 20, tokens: 4000 }
`;
export const wholeEnv = { DEEPSEEK_API_KEY: "sk-from-the-environment", TELEGRAM_TOKEN: "123:telegram-token-value" };
