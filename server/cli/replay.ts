/** `openlani replay TURN [--model M]`: a stored turn once more, from its recording or with another model. */
import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { v7 as newId } from "uuid";
import { defaultLimits } from "../agent/limits.ts";
import { runTurn } from "../agent/run-turn.ts";
import { loadConfig } from "../config/service.ts";
import type { Usage } from "../model/model.ts";
import { createModels } from "../model/models.ts";
import { createPriceBook } from "../model/prices.ts";
import type { ModelSettings } from "../model/settings.ts";
import { createCalendar } from "../observe/day.ts";
import { createMeter } from "../observe/meter.ts";
import { compare, NotReplayable, replay, type StoredTurn, type Transcript, transcriptOf } from "../observe/replay.ts";
import { createFuse } from "../safety/fuse.ts";
import { createRedactor } from "../safety/redact.ts";
import { createWorkspace } from "../workspace/workspace.ts";
import { CliError, type Command, type Io, note, print, say } from "./command.ts";
import { openToLook } from "./look.ts";
import { cannotWriteInto } from "./places.ts";

const differs = 3;

/** One line of at most `width` characters. */
function line(text: string, width = 160): string {
	const flat = text.replace(/\s+/g, " ").trim();
	return flat.length > width ? `${[...flat].slice(0, width - 1).join("")}…` : flat;
}

function cost(io: Io, usage: Usage): string {
	const price =
		usage.cost === null
			? say(io, { en: "price unknown", zh: "价格未知" })
			: usage.cost === 0
				? say(io, { en: "free", zh: "免费" })
				: `${usage.cost.toPrecision(3)} ${usage.currency}`;
	const [input, output] = [usage.inputTokens, usage.outputTokens].map((tokens) => tokens.toLocaleString("en"));
	return say(io, { en: `${input} + ${output} tokens, ${price}`, zh: `${input} + ${output} 个 token，${price}` });
}

/** Both transcripts below each other, step by step. */
function sideBySide(io: Io, then: Transcript, now: Transcript): void {
	const before = say(io, { en: "then", zh: "当时" });
	const after = say(io, { en: "now ", zh: "现在" });
	for (let index = 0; index < Math.max(then.steps.length, now.steps.length); index += 1) {
		print(io, say(io, { en: `step ${index + 1}`, zh: `步骤 ${index + 1}` }));
		for (const [name, transcript] of [
			[before, then],
			[after, now],
		] as const) {
			const step = transcript.steps[index];
			const calls = step?.calls.map((call) => `${call.name}(${line(call.arguments, 80)}) → ${line(call.result, 60)}`) ?? [];
			print(io, `  ${name}  ${step ? [line(step.text), ...calls].filter((part) => part !== "").join("\n        ") || "·" : "—"}`);
		}
	}
	for (const [name, transcript] of [
		[before, then],
		[after, now],
	] as const) {
		print(io, `${name}  ${transcript.modelName ?? "?"}: ${transcript.state}, ${cost(io, transcript.usage)}`);
		print(io, `      ${transcript.reply}`);
	}
}

export const command: Command = {
	name: "replay",
	usage: "TURN [--model M]",
	about: { en: "run a stored turn again and show what differs", zh: "重放一个已保存的回合并显示差异" },
	details: {
		en: "Without --model: from the recorded answers, offline and always the same; shows where today's code differs (exit code 3). With --model: the same task to another configured model, both shown with cost; this costs money and counts against the daily limit. Tools answer with what they answered then; nothing is done, stored or sent.",
		zh: "不带 --model：用录下的回答离线重放，结果总是相同，并显示今天的代码有何不同（退出码 3）。带 --model：把同一任务交给另一个已配置的模型，并列显示两者及费用；这会产生费用并计入每日上限。工具只返回当时的结果，不做、不存、不发任何东西。",
	},
	flags: {
		model: { type: "text", value: "ID", about: { en: "another configured model", zh: "另一个已配置的模型" } },
		json: { type: "switch", about: { en: "print it as JSON", zh: "以 JSON 输出" } },
	},
	words: [1, 1],
	async run(io, input) {
		const clock = { now: () => Date.now() };
		const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
		const [turnId = ""] = input.words;
		const workspace = createWorkspace({ home: io.environment.home, clock, log: silent });
		const there = await access(workspace.paths.database).then(
			() => true,
			() => false,
		);
		if (!there)
			throw new CliError(say(io, { en: `There is no database in ${io.environment.home}.`, zh: `${io.environment.home} 里没有数据库。` }));
		const why = input.text("model") === null ? null : await cannotWriteInto(dirname(workspace.paths.database));
		if (why)
			throw new CliError(
				say(io, {
					en: `What another model costs is counted, and the database of ${io.environment.home} cannot be written: ${why.en}.`,
					zh: `换模型重放要计入用量，而 ${io.environment.home} 的数据库无法写入：${why.zh}。`,
				}),
			);
		const config = await loadConfig({ environment: io.environment, clock, log: silent, readOnly: true });
		const settings = config.current();
		const calendar = createCalendar(() => settings.timezone);
		const store = await openToLook(io, {
			file: workspace.paths.database,
			assetsDir: workspace.paths.assets,
			clock,
			newId,
			dayOf: calendar.dayOf,
		});
		try {
			const turn = await store.turns.get(turnId);
			if (!turn) throw new CliError(say(io, { en: `There is no turn "${turnId}".`, zh: `没有回合“${turnId}”。` }));
			const [steps, calls, ids, reply] = await Promise.all([
				store.turns.steps(turnId),
				store.ledger.callsOf(turnId),
				store.turns.messageIds(turnId),
				store.messages.replyOf(turnId),
			]);
			const joined = new Set(steps.flatMap((step) => step.joined.map((message) => message.id)));
			const messages = (await Promise.all(ids.filter((id) => !joined.has(id)).map((id) => store.messages.get(id)))).flatMap((row) =>
				row && row.role === "user" ? [row] : [],
			);
			const stored: StoredTurn = {
				turn,
				messages,
				steps,
				calls,
				reply: reply?.text ?? null,
				timezone: settings.timezone,
				locale: settings.locale ?? io.environment.language,
			};

			const id = input.text("model");
			const models = id === null ? null : otherModel(id);
			const then = transcriptOf(stored);
			const now = await replay({
				stored,
				runTurn,
				limits: { ...defaultLimits(), maxSteps: settings.agent.maxSteps, maxRounds: settings.agent.maxRounds },
				...(models ? { model: models } : {}),
				signal: io.signal,
			});
			models?.close();
			const differences = compare(then, now);
			const redact = createRedactor(config.secrets());
			if (input.on("json")) {
				print(io, JSON.stringify(redact.data({ turn: turnId, model: id, differences, before: then, after: now }), null, "\t"));
			} else if (id !== null) sideBySide(io, redact.data(then), redact.data(now));
			else {
				for (const { where, before, after } of redact.data(differences)) print(io, `${where}\n  - ${line(before)}\n  + ${line(after)}`);
				note(
					io,
					differences.length === 0
						? say(io, { en: `The same in all ${now.steps.length} steps.`, zh: `全部 ${now.steps.length} 个步骤都相同。` })
						: say(io, { en: `${differences.length} differences.`, zh: `${differences.length} 处不同。` }),
				);
			}
			return id === null && differences.length > 0 ? differs : 0;
		} catch (error) {
			if (error instanceof NotReplayable)
				throw new CliError(
					say(io, { en: `This turn cannot be replayed: ${error.message}.`, zh: "这个回合无法重放：它的模型请求正文已按保留期限删除。" }),
				);
			throw error;
		} finally {
			await store.close();
			await config.close();
		}

		function otherModel(wanted: string) {
			const entries: ModelSettings[] = settings.models.map((entry) => ({
				...entry,
				price: entry.price ? { ...entry.price, currency: entry.price.currency ?? "USD" } : null,
			}));
			if (!entries.some((entry) => entry.id === wanted) && wanted !== "demo")
				throw new CliError(say(io, { en: `There is no model "${wanted}" in the configuration.`, zh: `配置里没有模型“${wanted}”。` }));
			const prices = createPriceBook(Object.fromEntries(entries.map((entry) => [entry.id, entry.price])));
			const priced = (entry: ModelSettings) => ({ id: entry.id, provider: entry.provider, modelName: entry.model, baseUrl: entry.baseUrl });
			const fuse = createFuse({
				ledger: store.ledger,
				budget: () => ({ ...settings.budget, dailyShare: settings.people.dailyShare }),
				calendar,
				timezone: () => settings.timezone,
				clock,
			});
			const meter = createMeter({
				ledger: store.ledger,
				fuse,
				prices,
				modelOf: (one) => {
					const entry = entries.find((each) => each.id === one);
					return entry ? priced(entry) : one === "demo" ? { id: "demo", provider: "demo", modelName: "demo" } : null;
				},
				redact: createRedactor(config.secrets()),
				clock,
				newId,
			});
			return createModels({
				models: wanted === "demo" ? [] : entries.filter((entry) => entry.id === wanted),
				roles: { ...settings.roles, chat: wanted === "demo" ? [] : [wanted] },
				meter,
				prices: {
					cost(entry, usage) {
						return prices.cost(priced(entry), usage, clock.now()) ?? { cost: null, currency: "USD" };
					},
				},
				readAsset: (sha256) => store.assets.read(sha256),
				clock,
				newId,
				log: silent,
			});
		}
	},
};
