import { PasswordInput, type PasswordInputProps } from "@mantine/core";
import { useTranslation } from "react-i18next";

/** A field for a secret. The button that shows it speaks the page's language and is reached by keys as well. */
export function PasswordField(props: PasswordInputProps) {
	const { t } = useTranslation();
	return (
		<PasswordInput
			// It marks the frame around the field alone.
			aria-invalid={props.error ? true : undefined}
			visibilityToggleFocusable
			visibilityToggleButtonProps={{ "aria-label": t("app.showSecret") }}
			{...props}
		/>
	);
}
