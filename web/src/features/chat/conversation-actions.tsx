import { TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { useMatch, useNavigate } from "react-router";
import type { Conversation } from "../../../../server/http/contract.ts";
import { useSession } from "../../app/session.tsx";
import { api } from "../../lib/api.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { plainLine } from "./trace.ts";

export interface ListAction {
	kind: "rename" | "delete";
	conversation: Conversation;
}

type List = { conversations: Conversation[] };

/** Pins or unpins at once; a refusal puts it back. */
export function usePin(): (conversation: Conversation) => void {
	const queries = useQueryClient();
	return (conversation) => {
		const set = (pinned: boolean) =>
			queries.setQueryData<List>(
				["conversations"],
				(list) => list && { conversations: list.conversations.map((one) => (one.id === conversation.id ? { ...one, pinned } : one)) },
			);
		set(!conversation.pinned);
		api.patchConversation(conversation.id, { pinned: !conversation.pinned }).catch(() => set(conversation.pinned));
	};
}

/** Rename and delete, each with one question. */
export function ConversationDialogs({ action, onClose }: { action: ListAction | null; onClose(): void }) {
	const { t } = useTranslation();
	const reason = useReason();
	const queries = useQueryClient();
	const navigate = useNavigate();
	const { chat } = useSession();
	const open = useMatch("/chat/:id")?.params.id;
	const [name, setName] = useState("");
	// What was asked last stays readable while the dialog fades.
	const [shown, setShown] = useState(action);
	useEffect(() => {
		if (!action) return;
		setShown(action);
		setName(action.conversation.title);
	}, [action]);
	const conversation = shown?.conversation;

	const rename = useMutation({
		mutationFn: ({ id, title }: { id: string; title: string }) => api.patchConversation(id, { title }),
		onSuccess(_answer, { id, title }) {
			queries.setQueryData<List>(
				["conversations"],
				(list) => list && { conversations: list.conversations.map((one) => (one.id === id ? { ...one, title } : one)) },
			);
			onClose();
		},
	});
	const remove = useMutation({
		mutationFn: (id: string) => api.deleteConversation(id),
		onSuccess(_answer, id) {
			queries.setQueryData<List>(["conversations"], (list) => list && { conversations: list.conversations.filter((one) => one.id !== id) });
			chat.dispatch({ type: "drop", conversation: id });
			onClose();
			if (open === id) void navigate("/chat", { replace: true });
		},
	});
	const title = plainLine(conversation?.title ?? "") || t("list.untitled");
	return (
		<>
			<Dialog
				opened={action?.kind === "rename"}
				title={t("list.renameTitle")}
				action={t("app.save")}
				busy={rename.isPending}
				disabled={name.trim() === ""}
				onClose={onClose}
				onConfirm={() => conversation && rename.mutate({ id: conversation.id, title: name.trim() })}
			>
				<TextInput
					label={t("list.name")}
					value={name}
					onChange={(event) => setName(event.currentTarget.value)}
					maxLength={200}
					data-autofocus
					error={rename.error ? reason(rename.error) : null}
				/>
			</Dialog>
			<Dialog
				danger
				opened={action?.kind === "delete"}
				title={t("list.deleteTitle")}
				action={t("list.delete")}
				busy={remove.isPending}
				onClose={onClose}
				onConfirm={() => conversation && remove.mutate(conversation.id)}
			>
				<p>{t("list.deleteText", { title })}</p>
				{remove.error && <p role="alert">{reason(remove.error)}</p>}
			</Dialog>
		</>
	);
}
