import { ActionIcon, Button, Menu, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Ellipsis, Pin, Search, SquarePen } from "lucide-react";
import { memo, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { NavLink } from "react-router";
import type { Conversation } from "../../../../server/http/contract.ts";
import { useSession } from "../../app/session.tsx";
import { api } from "../../lib/api.ts";
import { clockTime, dayKey } from "../../lib/format.ts";
import { Notice, Skeleton } from "../../ui/parts.tsx";
import { ConversationDialogs, type ListAction, usePin } from "./conversation-actions.tsx";
import css from "./conversation-list.module.css";
import { type Group, groupConversations, searchConversations } from "./groups.ts";
import { isForgotten, plainLine } from "./trace.ts";

export function useConversations() {
	const { readConversations } = useSession();
	return useQuery({
		queryKey: ["conversations"],
		queryFn: ({ signal }) => readConversations(() => api.conversations(signal)),
		staleTime: 60_000,
	});
}

export function ConversationList() {
	const { t, i18n } = useTranslation();
	const query = useConversations();
	const [search, setSearch] = useState("");
	const [action, setAction] = useState<ListAction | null>(null);
	const input = useRef<HTMLInputElement>(null);
	useEffect(() => {
		const onKey = (event: KeyboardEvent) => {
			if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k" && input.current?.offsetParent) {
				event.preventDefault();
				input.current.select();
			}
		};
		window.addEventListener("keydown", onKey);
		return () => window.removeEventListener("keydown", onKey);
	}, []);
	const all = query.data?.conversations;
	const found = useSearch(all, search);
	return (
		<section className={css.list} aria-label={t("list.title")}>
			<div className={css.top}>
				<TextInput
					ref={input}
					value={search}
					onChange={(event) => setSearch(event.currentTarget.value)}
					onKeyDown={(event) => event.key === "Escape" && setSearch("")}
					placeholder={t("list.search")}
					aria-label={t("list.search")}
					leftSection={<Search size={15} aria-hidden="true" />}
					classNames={{ input: css.search }}
					className={css.grow}
					type="search"
				/>
				<ActionIcon
					component={NavLink}
					to="/chat/new"
					variant="subtle"
					color="gray"
					size={36}
					aria-label={t("list.new")}
					title={t("list.new")}
				>
					<SquarePen size={17} aria-hidden="true" />
				</ActionIcon>
			</div>
			<div className={css.scroll}>
				{found &&
					found.length > 0 &&
					groupConversations(found, new Date(), i18n.language).map((group) => (
						<ListGroup key={group.key} group={group} onAction={setAction} />
					))}
				{all?.length === 0 && <Notice title={t("list.empty")} text={t("list.emptyHint")} />}
				{all && all.length > 0 && found?.length === 0 && <p className={css.none}>{t("list.none", { query: search })}</p>}
				{!all && query.isPending && <Placeholders />}
				{!all && query.isError && (
					<Notice role="alert" title={t("list.error")}>
						<Button variant="default" size="xs" onClick={() => void query.refetch()}>
							{t("app.retry")}
						</Button>
					</Notice>
				)}
			</div>
			<ConversationDialogs action={action} onClose={() => setAction(null)} />
		</section>
	);
}

/** What is here answers at once; what only the daemon knows (older ones, what was said in them) comes after. */
function useSearch(all: Conversation[] | undefined, search: string): Conversation[] | undefined {
	const [settled] = useDebouncedValue(search.trim(), 250);
	const more = useQuery({
		queryKey: ["conversations", "search", settled],
		queryFn: ({ signal }) => api.searchConversations(settled, signal),
		enabled: settled !== "",
		staleTime: 10_000,
	}).data?.conversations;
	if (!all) return undefined;
	const found = searchConversations(all, search);
	if (!more || settled === "" || settled !== search.trim()) return found;
	const known = new Set(found.map((one) => one.id));
	const live = new Map(all.map((one) => [one.id, one]));
	return [...found, ...more.filter((one) => !known.has(one.id)).map((one) => live.get(one.id) ?? one)];
}

function ListGroup({ group, onAction }: { group: Group; onAction(action: ListAction): void }) {
	const { t } = useTranslation();
	const heading = "label" in group.heading ? group.heading.label : t(`list.${group.heading.kind}`);
	return (
		<section aria-label={heading}>
			<h2 className={css.heading}>{heading}</h2>
			<ul className={css.rows}>
				{group.conversations.map((conversation) => (
					<Row key={conversation.id} conversation={conversation} onAction={onAction} />
				))}
			</ul>
		</section>
	);
}

const Row = memo(function Row({ conversation, onAction }: { conversation: Conversation; onAction(action: ListAction): void }) {
	const { t, i18n } = useTranslation();
	const pin = usePin();
	const title = plainLine(conversation.title) || t("list.untitled");
	return (
		<li className={css.row}>
			<NavLink to={`/chat/${conversation.id}`} className={css.link}>
				<span className={css.line}>
					<span className={css.title}>{title}</span>
					{conversation.pinned && <Pin size={12} className={css.pin} aria-label={t("list.pinned")} />}
					<time dateTime={conversation.updatedAt} className={css.time}>
						{rowTime(conversation.updatedAt, i18n.language)}
					</time>
				</span>
				<span className={css.preview}>
					{conversation.busy ? (
						<em>{t(conversation.busy === "running" ? "list.busy" : "list.queued")}</em>
					) : isForgotten(conversation.preview ?? "") ? (
						t("chat.forgotten")
					) : (
						plainLine(conversation.preview ?? "") || t("list.noPreview")
					)}
				</span>
			</NavLink>
			<Menu position="bottom-end" width={150}>
				<Menu.Target>
					<ActionIcon variant="subtle" color="gray" size={28} className={css.more} aria-label={t("list.actions", { title })}>
						<Ellipsis size={16} aria-hidden="true" />
					</ActionIcon>
				</Menu.Target>
				<Menu.Dropdown>
					<Menu.Item onClick={() => onAction({ kind: "rename", conversation })}>{t("list.rename")}</Menu.Item>
					<Menu.Item onClick={() => pin(conversation)}>{conversation.pinned ? t("list.unpin") : t("list.pin")}</Menu.Item>
					<Menu.Item color="var(--danger)" onClick={() => onAction({ kind: "delete", conversation })}>
						{t("list.delete")}
					</Menu.Item>
				</Menu.Dropdown>
			</Menu>
		</li>
	);
});

/** The hour for the last two days (their heading names the day), else the date. */
function rowTime(iso: string, locale: string): string {
	const { kind } = dayKey(iso, new Date(), locale);
	return kind === "today" || kind === "yesterday"
		? clockTime(iso, locale)
		: new Intl.DateTimeFormat(locale, { month: "numeric", day: "numeric" }).format(new Date(iso));
}

function Placeholders() {
	const { t } = useTranslation();
	return (
		<div role="status" className={css.waiting}>
			<span className="hidden">{t("app.loading")}</span>
			{[70, 55, 80, 62, 74].map((width) => (
				<div key={width} className={css.waitingRow}>
					<Skeleton width={`${width}%`} height={15} />
					<Skeleton width="88%" height={12} />
				</div>
			))}
		</div>
	);
}
