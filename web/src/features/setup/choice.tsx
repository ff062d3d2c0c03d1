import type { ReactNode } from "react";
import css from "./setup.module.css";

interface ChoiceProps {
	name: string;
	checked: boolean;
	label: string;
	hint?: string;
	lang?: string;
	onPick(): void;
	/** Shown under the choice while it is picked. */
	children?: ReactNode;
}

/** A radio as a quiet card. */
export function Choice({ name, checked, label, hint, lang, onPick, children }: ChoiceProps) {
	return (
		<div className={css.choice} data-checked={checked || undefined} lang={lang}>
			<label>
				<input type="radio" name={name} checked={checked} onChange={onPick} />
				<span className={css.radio} aria-hidden="true" />
				<span className={css.choiceText}>
					<b>{label}</b>
					{hint && <small>{hint}</small>}
				</span>
			</label>
			{checked && children && <div className={css.choiceBody}>{children}</div>}
		</div>
	);
}
