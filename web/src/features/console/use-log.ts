import { useEffect, useReducer, useRef, useState } from "react";
import { useLiveState, useSession } from "../../app/session.tsx";
import { api } from "../../lib/api.ts";
import { type Level, type LogLine, lineOfEvent, lineOfFrame, mergeLines } from "./log.ts";

interface LogState {
	lines: LogLine[];
	/** Lines that came while paused. */
	waiting: LogLine[];
	paused: boolean;
}

type LogAction = { type: "live"; lines: LogLine[] } | { type: "history"; lines: LogLine[] } | { type: "pause"; paused: boolean };

function reduce(state: LogState, action: LogAction): LogState {
	switch (action.type) {
		case "live":
			return state.paused
				? { ...state, waiting: mergeLines(state.waiting, action.lines) }
				: { ...state, lines: mergeLines(state.lines, action.lines) };
		case "history":
			return { ...state, lines: mergeLines(action.lines, state.lines) };
		case "pause":
			return action.paused ? { ...state, paused: true } : { lines: mergeLines(state.lines, state.waiting), waiting: [], paused: false };
	}
}

/** How far back the first look goes, then the second; numbers leave a gap of up to 100,000 at each start of the daemon. */
const lookBack = [3_000, 250_000];
const enough = 60;
const pageSize = 1000;

/** The newest part of what is kept, at `level` or above. Steps and tools are kept as details, but belong to the whole picture. */
async function readHistory(newest: number, level: Level, signal: AbortSignal): Promise<LogLine[]> {
	let lines: LogLine[] = [];
	for (const span of lookBack) {
		lines = [];
		let after = Math.max(0, newest - span);
		for (let page = 0; page < 8; page += 1) {
			const { events } = await api.events({ after, level: level === "info" ? "debug" : level, limit: pageSize }, signal);
			lines = mergeLines(
				lines,
				events.flatMap((event) => lineOfEvent(event) ?? []),
			);
			const last = events.at(-1);
			if (events.length < pageSize || !last) break;
			after = last.seq;
		}
		if (lines.length >= enough || newest - span <= 0) break;
	}
	return lines;
}

/** The log as it grows, with what is kept of before. */
export function useLog(level: Level) {
	const { watchFrames, chat } = useSession();
	const connected = useLiveState().kind === "open";
	const [state, dispatch] = useReducer(reduce, { lines: [], waiting: [], paused: false });
	const [history, setHistory] = useState<"loading" | "ready" | "failed">("loading");
	const [attempt, retry] = useReducer((count: number) => count + 1, 0);
	const fresh = useRef<LogLine[]>([]);
	useEffect(() => {
		let timer: ReturnType<typeof setTimeout> | null = null;
		const stop = watchFrames((frame) => {
			const line = lineOfFrame(frame);
			if (line === null) return;
			fresh.current.push(line);
			// A busy daemon says much: drawn a few times a second, not at every line.
			timer ??= setTimeout(() => {
				timer = null;
				const lines = fresh.current;
				fresh.current = [];
				dispatch({ type: "live", lines });
			}, 120);
		});
		return () => {
			stop();
			if (timer) clearTimeout(timer);
		};
	}, [watchFrames]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: `attempt` asks again
	useEffect(() => {
		if (!connected) return;
		const aborter = new AbortController();
		setHistory((before) => (before === "ready" ? before : "loading"));
		readHistory(chat.get().seq, level, aborter.signal).then(
			(lines) => {
				if (aborter.signal.aborted) return;
				dispatch({ type: "history", lines });
				setHistory("ready");
			},
			() => {
				if (!aborter.signal.aborted) setHistory("failed");
			},
		);
		return () => aborter.abort();
	}, [connected, chat, level, attempt]);
	return {
		lines: state.lines,
		waiting: state.waiting.length,
		paused: state.paused,
		setPaused: (paused: boolean) => dispatch({ type: "pause", paused }),
		history,
		retry,
	};
}
