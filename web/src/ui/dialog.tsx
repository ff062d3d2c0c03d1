import { Button, Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import css from "./dialog.module.css";

interface DialogProps {
	opened: boolean;
	title: string;
	action: string;
	danger?: boolean;
	busy?: boolean;
	disabled?: boolean;
	size?: string;
	onClose(): void;
	onConfirm(): void;
	children: ReactNode;
}

/** One question with two answers. Enter in a field confirms; a dangerous one starts on "Cancel". */
export function Dialog({
	opened,
	title,
	action,
	danger = false,
	busy = false,
	disabled = false,
	size = "440px",
	onClose,
	onConfirm,
	children,
}: DialogProps) {
	const { t } = useTranslation();
	return (
		<Modal
			opened={opened}
			onClose={onClose}
			title={title}
			size={size}
			closeButtonProps={{ "aria-label": t("app.close") }}
			classNames={{ title: css.title }}
		>
			<form
				onSubmit={(event) => {
					event.preventDefault();
					if (!disabled) onConfirm();
				}}
			>
				<div className={css.body}>{children}</div>
				<div className={css.actions}>
					<Button variant="default" onClick={onClose} data-autofocus={danger || undefined}>
						{t("app.cancel")}
					</Button>
					<Button type="submit" loading={busy} disabled={disabled} color={danger ? "dawn.8" : "sky"}>
						{action}
					</Button>
				</div>
			</form>
		</Modal>
	);
}
