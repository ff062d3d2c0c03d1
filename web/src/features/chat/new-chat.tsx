import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import { useSession, useStatus } from "../../app/session.tsx";
import { api } from "../../lib/api.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Mark } from "../../ui/mark.tsx";
import css from "./chat-page.module.css";
import { Composer, type Outgoing } from "./composer.tsx";
import { PhoneTop } from "./phone-top.tsx";

const starters = ["plan", "note", "time", "files"] as const;

/** The start of a conversation: it is made with its first message. */
export function NewChat({ phone }: { phone: boolean }) {
	const { t } = useTranslation();
	const reason = useReason();
	const session = useSession();
	const queries = useQueryClient();
	const navigate = useNavigate();
	const status = useStatus();
	const [model, setModel] = useState<string | null>(null);
	const [problem, setProblem] = useState<string | null>(null);

	async function send(message: Outgoing): Promise<boolean> {
		setProblem(null);
		try {
			const { id } = await api.createConversation();
			session.send({ ...message, conversation: id, replaces: null });
			void queries.invalidateQueries({ queryKey: ["conversations"] });
			await navigate(`/chat/${id}`, { replace: true });
			return true;
		} catch (error) {
			setProblem(t("chat.createFailed", { reason: reason(error) }));
			return false;
		}
	}

	return (
		<section className={css.thread} aria-label={t("list.untitled")}>
			{phone && <PhoneTop title={t("list.untitled")} />}
			<div className={css.hello}>
				<div className={css.helloInner}>
					<Mark size={52} />
					<h1>{t("chat.hello")}</h1>
					<p>{t("chat.helloHint")}</p>
					<ul className={css.starters}>
						{starters.map((key) => (
							<li key={key}>
								<button type="button" onClick={() => void send({ text: t(`chat.starters.${key}`), attachments: [], model })}>
									{t(`chat.starters.${key}`)}
								</button>
							</li>
						))}
					</ul>
					{status?.demo && (
						<p className={css.demo}>
							{t("demo.note")} <Link to="/settings">{t("demo.link")}</Link>
						</p>
					)}
				</div>
			</div>
			<div className={css.dock}>
				<Composer
					place="new"
					model={model}
					onModel={setModel}
					running={false}
					editing={null}
					onCancelEdit={() => {}}
					onEditLast={() => {}}
					onSend={send}
					onStop={() => {}}
					problem={problem}
				/>
			</div>
		</section>
	);
}
