/** `openlani doctor`: looks at everything and says of each fault how to mend it. */
import { loadConfig } from "../config/service.ts";
import {
	type Checked,
	checkClock,
	checkConfig,
	checkDisk,
	checkFiles,
	checkHome,
	checkModels,
	checkPort,
	checkSandbox,
	checkStore,
	checkToken,
	type Finding,
} from "./checks.ts";
import { CliError, type Command, print, say } from "./command.ts";
import { findDaemon } from "./connect.ts";
import { counted, createPaint } from "./terminal.ts";

export const command: Command = {
	name: "doctor",
	usage: "",
	about: { en: "check everything, and say how to mend it", zh: "全面检查，并给出修复办法" },
	details: {
		en: "Exit code 0 when nothing is at fault (warnings allowed), 1 otherwise. Asks every model for a few words unless --offline.",
		zh: "没有故障时退出码为 0（允许有警告），否则为 1。默认会向每个模型发一个小请求，--offline 则不发。",
	},
	flags: {
		json: { type: "switch", about: { en: "print the findings as JSON", zh: "以 JSON 输出结果" } },
		offline: { type: "switch", about: { en: "ask no model", zh: "不测试模型" } },
	},
	words: [0, 0],
	async run(io, input) {
		const silent = { info: () => undefined, warn: () => undefined };
		const config = await loadConfig({ environment: io.environment, clock: { now: () => Date.now() }, log: silent, readOnly: true });
		const found: Finding[] = [];
		try {
			let daemon: Checked["daemon"] = null;
			try {
				daemon = await findDaemon(io);
			} catch (error) {
				if (!(error instanceof CliError)) throw error;
				found.push({ area: "port", state: "fault", what: { en: error.message, zh: error.message } });
			}
			const checked: Checked = { io, config, daemon };
			found.unshift(
				...(await checkHome(checked)),
				...checkConfig(checked),
				...(await checkFiles(checked)),
				...(await checkToken(checked)),
				...checkStore(checked),
				...(await checkDisk(checked)),
			);
			found.push(...(await checkModels(checked, input.on("offline"))), ...checkSandbox(), ...(await checkClock(checked)));
			if (!found.some((finding) => finding.area === "port")) found.push(...(await checkPort(checked)));
		} finally {
			await config.close();
		}
		const faults = found.filter(({ state }) => state === "fault").length;
		const warnings = found.filter(({ state }) => state === "warn").length;
		if (input.on("json")) {
			print(
				io,
				JSON.stringify(
					{
						ok: faults === 0,
						findings: found.map(({ area, state, what, fix }) => ({ area, state, what: say(io, what), fix: fix ? say(io, fix) : null })),
					},
					null,
					"\t",
				),
			);
			return faults === 0 ? 0 : 1;
		}
		const paint = createPaint(io.environment.terminal.color && io.stdout.isTTY === true);
		for (const { area, state, what, fix } of found) {
			const mark =
				state === "ok" ? paint.accent("✓") : state === "note" ? paint.dim("·") : state === "warn" ? paint.warn("!") : paint.warn("✗");
			print(io, `${mark} ${area.padEnd(8)} ${say(io, what)}`);
			if (fix) print(io, paint.dim(`           → ${say(io, fix)}`));
		}
		print(
			io,
			say(io, {
				en: faults + warnings === 0 ? "Everything is fine." : `${counted(faults, "fault")}, ${counted(warnings, "warning")}.`,
				zh: faults + warnings === 0 ? "一切正常。" : `${faults} 个故障，${warnings} 个警告。`,
			}),
		);
		return faults === 0 ? 0 : 1;
	},
};
