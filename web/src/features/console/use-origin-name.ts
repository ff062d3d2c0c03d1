import { useTranslation } from "react-i18next";

const words: Record<string, string> = {
	human: "turns.origin.human",
	alarm: "turns.origin.alarm",
	heartbeat: "turns.origin.heartbeat",
	job: "turns.origin.job",
	bot: "turns.origin.bot",
	"mail-robot": "turns.origin.mailRobot",
	tool: "turns.origin.tool",
};

/** What set a turn off, in people's words; a name we have no word for stays as it is. */
export function useOriginName(): (origin: string) => string {
	const { t } = useTranslation();
	return (origin) => {
		const word = words[origin];
		return word ? t(word) : origin;
	};
}
