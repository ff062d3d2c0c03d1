import { FileText, LoaderCircle, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { assetUrl } from "../../lib/api.ts";
import { fileSize } from "../../lib/format.ts";
import { useReason } from "../../lib/use-reason.ts";
import css from "./composer.module.css";
import type { Uploads } from "./use-uploads.ts";

/** What goes along with the message, above the field. */
export function UploadList({ uploads }: { uploads: Uploads }) {
	const { t } = useTranslation();
	const reason = useReason();
	if (uploads.items.length === 0) return null;
	return (
		<ul className={css.uploads} aria-label={t("chat.attachments")}>
			{uploads.items.map(({ key, name, attachment, error }) => (
				<li key={key} data-failed={error ? "" : undefined}>
					{attachment?.kind === "image" ? (
						<img src={assetUrl(attachment.sha256)} alt="" />
					) : attachment || error ? (
						<FileText size={16} aria-hidden="true" />
					) : (
						<LoaderCircle size={16} className={css.spin} aria-hidden="true" />
					)}
					<span className={css.uploadName} role={error ? "alert" : undefined}>
						{error ? t("chat.uploadFailed", { name, reason: reason(error) }) : attachment ? name : t("chat.uploading", { name })}
					</span>
					{attachment && <small>{fileSize(attachment.bytes)}</small>}
					<button type="button" onClick={() => uploads.remove(key)} aria-label={t("chat.removeFile", { name })}>
						<X size={14} aria-hidden="true" />
					</button>
				</li>
			))}
		</ul>
	);
}
