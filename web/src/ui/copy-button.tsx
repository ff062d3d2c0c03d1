import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";

/** Copies `text()` and says so for two seconds. Works on plain http too, where the clipboard API is missing. */
export function CopyButton({
	text,
	label,
	className,
	iconOnly = false,
}: {
	text(): string;
	label: string;
	className?: string | undefined;
	iconOnly?: boolean;
}) {
	const { t } = useTranslation();
	const [copied, setCopied] = useState(false);
	useEffect(() => {
		if (!copied) return;
		const timer = setTimeout(() => setCopied(false), 2000);
		return () => clearTimeout(timer);
	}, [copied]);
	return (
		<button
			type="button"
			className={className}
			aria-label={copied ? t("chat.copied") : label}
			title={iconOnly ? label : undefined}
			onClick={() => {
				void copyText(text()).then(setCopied);
			}}
		>
			{iconOnly ? (
				copied ? (
					<Check size={14} aria-hidden="true" />
				) : (
					<Copy size={14} aria-hidden="true" />
				)
			) : copied ? (
				t("chat.copied")
			) : (
				t("chat.copy")
			)}
			<span className="hidden" role="status">
				{copied ? t("chat.copied") : ""}
			</span>
		</button>
	);
}

async function copyText(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		const area = document.createElement("textarea");
		area.value = text;
		area.style.position = "fixed";
		area.style.opacity = "0";
		document.body.append(area);
		area.select();
		const done = document.execCommand("copy");
		area.remove();
		return done;
	}
}
