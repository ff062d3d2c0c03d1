import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Notice } from "../ui/parts.tsx";

/** A fault in the page itself: says so calmly instead of leaving a white page. */
export class FaultBoundary extends Component<{ children: ReactNode }, { failed: boolean }> {
	override state = { failed: false };

	static getDerivedStateFromError(): { failed: boolean } {
		return { failed: true };
	}

	override render(): ReactNode {
		return this.state.failed ? <Fault /> : this.props.children;
	}
}

function Fault() {
	const { t } = useTranslation();
	return (
		<Notice alone role="alert" title={t("app.crashed")} text={t("app.crashedHint")}>
			<Button onClick={() => window.location.reload()}>{t("app.reload")}</Button>
		</Notice>
	);
}
