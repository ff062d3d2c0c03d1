import { ArrowUp, Paperclip, Square, X } from "lucide-react";
import {
	type ClipboardEvent,
	type FormEvent,
	type KeyboardEvent,
	useEffect,
	useEffectEvent,
	useId,
	useLayoutEffect,
	useRef,
	useState,
} from "react";
import { useTranslation } from "react-i18next";
import type { Attachment, Message } from "../../../../server/http/contract.ts";
import { useStatus } from "../../app/session.tsx";
import { nameInText } from "../../lib/format.ts";
import { isSendKey } from "../../lib/keys.ts";
import css from "./composer.module.css";
import { readDraft, writeDraft } from "./drafts.ts";
import { ModelPicker } from "./model-picker.tsx";
import { UploadList } from "./upload-list.tsx";
import { useDropZone } from "./use-drop-zone.ts";
import { useUploads } from "./use-uploads.ts";

export interface Outgoing {
	text: string;
	attachments: Attachment[];
	model: string | null;
}

interface ComposerProps {
	/** Where the draft belongs: a conversation's id, or "new". */
	place: string;
	model: string | null;
	onModel(model: string | null): void;
	/** A turn is running here and can be stopped. */
	running: boolean;
	editing: Message | null;
	onCancelEdit(): void;
	onEditLast(): void;
	/** Resolves true when the message is on its way; only then is the field emptied. */
	onSend(message: Outgoing): Promise<boolean>;
	onStop(): void;
	problem: string | null;
}

export function Composer({ place, model, onModel, running, editing, onCancelEdit, onEditLast, onSend, onStop, problem }: ComposerProps) {
	const { t, i18n } = useTranslation();
	const status = useStatus();
	const [text, setText] = useState(() => readDraft(place));
	const [sending, setSending] = useState(false);
	const area = useRef<HTMLTextAreaElement>(null);
	const picker = useRef<HTMLInputElement>(null);
	const composing = useRef(false);
	const composedAt = useRef<number | null>(null);
	const hintId = useId();
	const uploads = useUploads();
	const dropping = useDropZone(uploads.add);
	const ready = !sending && !uploads.busy && (text.trim() !== "" || uploads.done.length > 0);

	// A phone would throw its keyboard up at every page; a desk wants to type at once.
	// biome-ignore lint/correctness/useExhaustiveDependencies: also when the place changes
	useEffect(() => {
		if (window.matchMedia("(hover: hover)").matches) area.current?.focus();
	}, [place]);

	const startEdit = uploads.reset;
	useEffect(() => {
		if (!editing) return;
		setText(editing.text);
		startEdit(editing.attachments);
		area.current?.focus();
	}, [editing, startEdit]);

	// biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text
	useLayoutEffect(() => {
		const field = area.current;
		if (!field) return;
		field.style.height = "auto";
		field.style.height = `${Math.min(field.scrollHeight, Math.round(window.innerHeight * 0.4))}px`;
	}, [text]);

	function change(value: string): void {
		setText(value);
		if (!editing) writeDraft(place, value);
	}

	function cancelEdit(): void {
		setText(readDraft(place));
		uploads.reset([]);
		onCancelEdit();
	}

	/** Enter pressed while a file is still on its way: sent as soon as it is there, unless it fails. */
	const [wanted, setWanted] = useState(false);
	const failed = uploads.items.some((item) => item.error !== null);
	const sendNow = useEffectEvent(() => void send());
	useEffect(() => {
		if (!wanted || uploads.busy) return;
		setWanted(false);
		if (!failed) sendNow();
	}, [wanted, uploads.busy, failed]);

	async function send(): Promise<void> {
		if (uploads.busy) setWanted(true);
		if (!ready) return;
		setSending(true);
		const sent = await onSend({ text: text.trim(), attachments: uploads.done, model });
		setSending(false);
		if (!sent) return;
		setText("");
		writeDraft(place, "");
		uploads.reset([]);
		area.current?.focus();
	}

	function onKeyDown(event: KeyboardEvent<HTMLTextAreaElement>): void {
		const { nativeEvent } = event;
		const press = {
			key: event.key,
			shiftKey: event.shiftKey,
			altKey: event.altKey,
			keyCode: nativeEvent.keyCode,
			isComposing: nativeEvent.isComposing || composing.current,
			timeStamp: nativeEvent.timeStamp,
		};
		const sends = isSendKey(press, composedAt.current);
		// It is one key press that may still belong to the input method: the next one is meant, however quick it comes.
		composedAt.current = null;
		if (sends) {
			event.preventDefault();
			void send();
		} else if (event.key === "Escape" && editing && !press.isComposing) {
			cancelEdit();
		} else if (event.key === "ArrowUp" && text === "" && !editing && !press.isComposing) {
			event.preventDefault();
			onEditLast();
		}
	}

	function onPaste(event: ClipboardEvent): void {
		const files = [...event.clipboardData.files];
		// A spreadsheet or a page copies a picture beside its text: then the text is meant.
		if (files.length === 0 || event.clipboardData.getData("text/plain") !== "") return;
		event.preventDefault();
		uploads.add(files);
	}

	return (
		<form
			className={css.composer}
			data-drop={dropping || undefined}
			onSubmit={(event: FormEvent) => {
				event.preventDefault();
				void send();
			}}
		>
			{problem && (
				<p className={css.problem} role="alert">
					{problem}
				</p>
			)}
			{editing && (
				<p className={css.editing} role="status">
					<span>{t("chat.editing")}</span>
					<button type="button" onClick={cancelEdit} aria-label={t("app.cancel")}>
						<X size={15} aria-hidden="true" />
					</button>
				</p>
			)}
			<UploadList uploads={uploads} />
			<textarea
				ref={area}
				rows={1}
				className={css.field}
				value={text}
				placeholder={
					dropping
						? t("chat.drop")
						: editing
							? t("chat.placeholderEdit")
							: t("chat.placeholder", { name: nameInText(status?.agentName ?? "OpenLani", i18n.language) })
				}
				aria-label={t("chat.input")}
				aria-describedby={hintId}
				enterKeyHint="send"
				onChange={(event) => change(event.currentTarget.value)}
				onKeyDown={onKeyDown}
				onPaste={onPaste}
				onCompositionStart={() => {
					composing.current = true;
				}}
				onCompositionEnd={(event) => {
					composing.current = false;
					composedAt.current = event.nativeEvent.timeStamp;
				}}
			/>
			<div className={css.bar}>
				<button
					type="button"
					className={css.round}
					aria-label={t("chat.attach")}
					title={t("chat.attach")}
					onClick={() => picker.current?.click()}
				>
					<Paperclip size={17} aria-hidden="true" />
				</button>
				<input
					ref={picker}
					type="file"
					multiple
					hidden
					onChange={(event) => {
						uploads.add([...(event.currentTarget.files ?? [])]);
						event.currentTarget.value = "";
					}}
				/>
				<ModelPicker value={model} onChange={onModel} />
				<span id={hintId} className={css.hint}>
					{t("chat.keysHint")}
				</span>
				{running && (
					<button type="button" className={css.stop} onClick={onStop} aria-label={t("chat.stop")} title={t("chat.stop")}>
						<Square size={13} fill="currentColor" aria-hidden="true" />
					</button>
				)}
				{(!running || text.trim() !== "" || uploads.done.length > 0) && (
					<button type="submit" className={css.send} disabled={!ready} aria-label={t("chat.send")} title={t("chat.send")}>
						<ArrowUp size={19} aria-hidden="true" />
					</button>
				)}
			</div>
		</form>
	);
}
