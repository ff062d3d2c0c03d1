import { Button, TextInput } from "@mantine/core";
import { type RefObject, useState } from "react";
import { useTranslation } from "react-i18next";
import { setupCodeOf } from "../../lib/setup-code.ts";
import css from "./setup.module.css";

/** Came without the link, or with an old one: the code can be pasted. */
export function CodeStep({
	wrong,
	heading,
	onCode,
}: {
	wrong: boolean;
	heading: RefObject<HTMLHeadingElement | null>;
	onCode(code: string): void;
}) {
	const { t } = useTranslation();
	const [text, setText] = useState("");
	const code = setupCodeOf(text);
	return (
		<form
			onSubmit={(event) => {
				event.preventDefault();
				if (code) onCode(code);
			}}
		>
			<h1 ref={heading} tabIndex={-1}>
				{t("setup.codeTitle")}
			</h1>
			<p className={css.hint}>{t("setup.codeText")}</p>
			<div className={css.body}>
				<TextInput
					label={t("setup.code")}
					value={text}
					onChange={(event) => setText(event.currentTarget.value)}
					error={wrong && text === "" ? t("setup.codeWrong") : null}
					spellCheck={false}
					autoCapitalize="none"
					autoComplete="off"
				/>
			</div>
			<div className={css.actions}>
				<span />
				<Button type="submit" disabled={!code}>
					{t("setup.codeUse")}
				</Button>
			</div>
		</form>
	);
}
