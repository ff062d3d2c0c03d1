import { useCallback, useEffect, useRef, useState } from "react";
import type { Attachment } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { newId } from "../../lib/ids.ts";

export interface Upload {
	key: string;
	name: string;
	attachment: Attachment | null;
	error: unknown;
}

export interface Uploads {
	items: Upload[];
	done: Attachment[];
	busy: boolean;
	add(files: File[]): void;
	remove(key: string): void;
	reset(attachments: Attachment[]): void;
}

/** As many as one message may carry. */
const most = 16;

/** Files go up as soon as they are chosen; the message then only names them. */
export function useUploads(): Uploads {
	const [items, setItems] = useState<Upload[]>([]);
	const aborts = useRef(new Map<string, AbortController>());

	useEffect(() => {
		const running = aborts.current;
		return () => {
			for (const abort of running.values()) abort.abort();
		};
	}, []);

	const add = useCallback((files: File[]) => {
		for (const file of files.slice(0, most)) {
			const key = newId();
			const abort = new AbortController();
			aborts.current.set(key, abort);
			setItems((before) => [...before, { key, name: file.name, attachment: null, error: null }].slice(0, most));
			const change = (part: Partial<Upload>) => setItems((before) => before.map((one) => (one.key === key ? { ...one, ...part } : one)));
			api
				.upload(file, abort.signal)
				.then(
					(attachment) => change({ attachment: { ...attachment, name: attachment.name || file.name } }),
					(error: unknown) => change({ error }),
				)
				.finally(() => aborts.current.delete(key));
		}
	}, []);

	const remove = useCallback((key: string) => {
		aborts.current.get(key)?.abort();
		setItems((before) => before.filter((one) => one.key !== key));
	}, []);

	const reset = useCallback((attachments: Attachment[]) => {
		setItems(attachments.map((attachment) => ({ key: newId(), name: attachment.name, attachment, error: null })));
	}, []);

	return {
		items,
		done: items.flatMap((item) => (item.attachment ? [item.attachment] : [])),
		busy: items.some((item) => !item.attachment && !item.error),
		add,
		remove,
		reset,
	};
}
