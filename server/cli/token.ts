/** `openlani token`: prints the API token, alone on its line. */
import { homeHolder } from "../workspace/lock.ts";
import { ensureToken, readToken } from "../workspace/token.ts";
import { CliError, type Command, type Io, print, say } from "./command.ts";
import { cannotWriteInto, needHome, refusal } from "./places.ts";

export const command: Command = {
	name: "token",
	usage: "",
	about: { en: "print the API token", zh: "输出 API 令牌" },
	details: {
		en: "It has the master's rights: keep it secret. OPENLANI_TOKEN goes before the one kept in the home.",
		zh: "它拥有主人的全部权限，请保密。设置了 OPENLANI_TOKEN 时以它为准。",
	},
	flags: {},
	words: [0, 0],
	async run(io) {
		const { home, token } = io.environment;
		// A token made in a folder that nobody serves would open nothing: most likely the home was mistyped.
		if (token === null) await needHome(io);
		if (token === null && (await readToken(home)) === null && (await homeHolder(home))) {
			throw new CliError(
				say(io, {
					en: "The running daemon was started with an OPENLANI_TOKEN of its own; it is kept nowhere.",
					zh: "运行中的守护进程用的是它自己的 OPENLANI_TOKEN，没有保存在数据目录里。",
				}),
			);
		}
		print(io, (await made(io)).token);
		return 0;
	},
};

async function made(io: Io): Promise<{ token: string }> {
	const { home, token } = io.environment;
	try {
		return await ensureToken(home, token);
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code === undefined || !["EROFS", "EACCES", "EPERM", "ENOENT"].includes(code)) throw error;
		const why = (await cannotWriteInto(home)) ?? refusal(code);
		throw new CliError(
			say(io, {
				en: `There is no token yet, and none can be kept in ${home}: ${why.en}.`,
				zh: `还没有令牌，也无法保存到 ${home}：${why.zh}。`,
			}),
		);
	}
}
