/** `openlani report [--turn ID | --day D] [--out FILE]`: one HTML file that works offline. */
import { access } from "node:fs/promises";
import { resolve } from "node:path";
import { v7 as newId } from "uuid";
import { loadConfig } from "../config/service.ts";
import { createCalendar } from "../observe/day.ts";
import { gatherDay, gatherTurn, type ReportFile } from "../observe/report/gather.ts";
import { renderReport } from "../observe/report/html.ts";
import { createRedactor } from "../safety/redact.ts";
import { writeFileAtomic } from "../workspace/atomic.ts";
import { createWorkspace, type Workspace } from "../workspace/workspace.ts";
import { CliError, type Command, note, print, say } from "./command.ts";
import { openToLook } from "./look.ts";
import { needHome, needTarget } from "./places.ts";
import { counted } from "./terminal.ts";

/** Files whose changes a report shows. */
const promptFiles = ["SOUL.md", "Agent.md", "IDENTITY.md", "MASTER.md", "USER.md", "Fact.md"];

export async function changesOf(workspace: Pick<Workspace, "versions" | "readVersion">, from: number, to: number): Promise<ReportFile[]> {
	const found: ReportFile[] = [];
	for (const file of promptFiles) {
		const versions = await workspace.versions(file).catch(() => []);
		for (const version of versions) {
			if (version.at < from || version.at >= to || version.before === null) continue;
			const [before, after] = await Promise.all([
				workspace.readVersion(file, version.before),
				workspace.readVersion(file, version.version),
			]);
			found.push({ file, at: version.at, by: version.by, reason: version.reason, before: before?.text ?? "", after: after?.text ?? "" });
		}
	}
	return found.sort((a, b) => a.at - b.at);
}

export const command: Command = {
	name: "report",
	usage: "[--turn ID | --day YYYY-MM-DD] [--out FILE]",
	about: { en: "write a report of a turn or a day as one HTML file", zh: "把一个回合或一天的报告写成一个 HTML 文件" },
	details: {
		en: "Tasks, steps, tool calls with arguments and results, changes of plan and prompt files, tokens and cost. Without --turn and --day: today. Without --out the file is named after the turn or day and put into the current folder; --out - prints it. The daemon may run.",
		zh: "包含任务、步骤、工具调用及其参数和结果、计划与提示词文件的改动、token 和费用。不带 --turn 和 --day 时为今天；不带 --out 时写到当前目录，--out - 输出到终端。守护进程可以同时运行。",
	},
	flags: {
		turn: { type: "text", value: "ID", about: { en: "one turn", zh: "某个回合" } },
		day: { type: "text", value: "YYYY-MM-DD", about: { en: "all turns of a day", zh: "某一天的全部回合" } },
		out: { type: "text", value: "FILE", short: "o", about: { en: "where to write it", zh: "写到哪里" } },
		language: { type: "text", value: "zh-CN|en", about: { en: "language of the report", zh: "报告的语言" } },
	},
	words: [0, 0],
	async run(io, input) {
		const clock = { now: () => Date.now() };
		const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
		const turn = input.text("turn");
		const wanted = input.text("day");
		if (turn !== null && wanted !== null)
			throw new CliError(say(io, { en: "--turn and --day exclude each other", zh: "--turn 和 --day 不能同时使用" }));
		if (wanted !== null && (!/^\d{4}-\d\d-\d\d$/.test(wanted) || Number.isNaN(Date.parse(`${wanted}T00:00:00Z`))))
			throw new CliError(say(io, { en: `"${wanted}" is no day; write it as YYYY-MM-DD`, zh: `“${wanted}”不是日期，请写成 YYYY-MM-DD` }));
		await needHome(io);
		const out = input.text("out");
		if (out !== null && out !== "-") await needTarget(io, resolve(out));
		const workspace = createWorkspace({ home: io.environment.home, clock, log: silent });
		if (
			!(await access(workspace.paths.database).then(
				() => true,
				() => false,
			))
		)
			throw new CliError(
				say(io, {
					en: `There is no database in ${io.environment.home}: nothing has happened there yet.`,
					zh: `${io.environment.home} 里没有数据库：那里还什么都没有发生。`,
				}),
			);
		const config = await loadConfig({ environment: io.environment, clock, log: silent, readOnly: true });
		try {
			const settings = config.current();
			const { timezone } = settings;
			const calendar = createCalendar(() => timezone);
			const store = await openToLook(io, {
				file: workspace.paths.database,
				assetsDir: workspace.paths.assets,
				clock,
				newId,
				dayOf: calendar.dayOf,
			});
			try {
				const options = {
					store,
					ledger: store.ledger,
					calendar,
					timezone,
					clock,
					changes: (from: number, to: number) => changesOf(workspace, from, to),
				};
				const data = turn === null ? await gatherDay(options, wanted ?? calendar.dayOf(clock.now())) : await gatherTurn(options, turn);
				if (data === null) throw new CliError(say(io, { en: `There is no turn "${turn}".`, zh: `没有回合“${turn}”。` }));
				const redact = createRedactor(config.secrets());
				const html = renderReport(redact.data(data), input.text("language") ?? settings.locale ?? io.environment.language);
				if (out === "-") {
					print(io, html);
					return 0;
				}
				const target = resolve(out ?? `openlani-${data.kind}-${data.name}.html`);
				await needTarget(io, target);
				await writeFileAtomic(target, html);
				note(io, say(io, { en: `${target}: ${counted(data.turns.length, "turn")}`, zh: `${target}：${data.turns.length} 个回合` }));
				return 0;
			} finally {
				await store.close();
			}
		} finally {
			await config.close();
		}
	},
};
