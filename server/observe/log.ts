/** The log: one readable line an event on the console, JSON in rotated files, the same event on the bus. Secrets are taken out here, before anything is written. */
import type { Logger } from "pino";
import type { LiveBody } from "../http/contract.ts";
import type { Redactor } from "../safety/redact.ts";
import { createLogFile, type LogFileOptions } from "./log-file.ts";
import { consoleLine, createClockFace } from "./log-line.ts";
import { createScreen } from "./log-screen.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";
export const logLevels: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error"];

export interface Log {
	/** `event` is a short stable name in dots ("turn.done"); `data` is plain data, `conversation` and `turnId` in it are indexed. */
	trace(event: string, data?: Record<string, unknown>): void;
	debug(event: string, data?: Record<string, unknown>): void;
	info(event: string, data?: Record<string, unknown>): void;
	warn(event: string, data?: Record<string, unknown>): void;
	error(event: string, data?: Record<string, unknown>): void;
	/** A log whose lines all carry `data`. */
	child(data: Record<string, unknown>): Log;
}

export interface RootLog extends Log {
	/** From now on every event (of `info` and above, and what else the level lets through) is also published; the answer ends that. Lines that come out of publishing are not published again. */
	attach(publish: (body: Extract<LiveBody, { type: "log" }>) => void): () => void;
	/** The same log without the bus: for lines that tell of what is on the bus already. */
	local(): Log;
	setLevel(level: LogLevel): void;
	level(): LogLevel;
	/** Writes what waits. */
	flush(): Promise<void>;
	close(): Promise<void>;
	/** Lines the files lost, for status and alerts. */
	lost(): number;
}

export interface LogOptions {
	/** `<home>/logs`; null = no files (a one-off command). */
	dir: string | null;
	level: LogLevel;
	/** The console says only warnings and errors. */
	quiet: boolean;
	clock: { now(): number };
	redact: Redactor;
	/** Where the console lines go. Default: standard error, for standard output belongs to the ready line and to answers. */
	console?: { write(text: string): unknown; isTTY?: boolean } | null;
	/** Default: when the console is a terminal. */
	colour?: boolean;
	/** Zone of the console's times. Default: the machine's. */
	timezone?: () => string;
	file?: Partial<Omit<LogFileOptions, "dir">>;
}

export function createLog(options: LogOptions): RootLog {
	const { redact, clock, quiet } = options;
	let threshold = logLevels.indexOf(options.level);
	const out = options.console === undefined ? process.stderr : options.console;
	const screen = out && createScreen(out);
	const colour = options.colour ?? out?.isTTY === true;
	const file = options.dir === null ? null : createLogFile({ dir: options.dir, ...options.file });
	const timeOfDay = createClockFace();
	const publishers = new Set<(body: Extract<LiveBody, { type: "log" }>) => void>();
	let publishing = false;

	// pino writes the JSON. It is loaded beside the start, not before it: lines that come earlier wait for it.
	let pino: Logger | null = null;
	let early: { level: LogLevel; record: Record<string, unknown>; event: string }[] = [];
	let urgent = false;
	const loaded = file
		? import("pino").then((module) => {
				pino = module.pino(
					{ level: "trace", base: undefined, messageKey: "event", timestamp: false, formatters: { level: (label) => ({ level: label }) } },
					{ write: (line: string) => file.write(line, urgent) },
				);
				for (const line of early) toFile(line.level, line.event, line.record);
				early = [];
			})
		: Promise.resolve();

	function toFile(level: LogLevel, event: string, record: Record<string, unknown>): void {
		if (!file) return;
		if (!pino) {
			early.push({ level, record, event });
			return;
		}
		urgent = level === "warn" || level === "error";
		pino[level](record, event);
	}

	function say(level: LogLevel, event: string, fixed: Record<string, unknown> | null, more: Record<string, unknown>, loud: boolean): void {
		const rank = logLevels.indexOf(level);
		if (rank < threshold) return;
		const data = redact.data(fixed ? { ...fixed, ...more } : more);
		const name = redact.text(event);
		const at = clock.now();
		if (screen && (!quiet || rank >= 3))
			screen.write(consoleLine({ time: timeOfDay(at, options.timezone?.()), level, event: name, data, colour }), rank >= 3);
		toFile(level, name, { at: new Date(at).toISOString(), ...data });
		if (!loud || publishers.size === 0 || publishing) return;
		publishing = true;
		try {
			const { conversation, turnId, message, ...rest } = data;
			const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
			for (const publish of publishers)
				publish({
					type: "log",
					level,
					event: name,
					message: text(message) ?? name,
					conversation: text(conversation),
					turnId: text(turnId),
					data: rest,
				});
		} catch {
			// A listener's fault is not the speaker's.
		} finally {
			publishing = false;
		}
	}

	function speaker(fixed: Record<string, unknown> | null, loud: boolean): Log {
		const at =
			(level: LogLevel) =>
			(event: string, data: Record<string, unknown> = {}): void =>
				say(level, event, fixed, data, loud);
		return {
			trace: at("trace"),
			debug: at("debug"),
			info: at("info"),
			warn: at("warn"),
			error: at("error"),
			child: (data) => speaker({ ...fixed, ...data }, loud),
		};
	}

	const quietly = speaker(null, false);
	return {
		...speaker(null, true),
		local: () => quietly,
		attach(publish) {
			publishers.add(publish);
			return () => publishers.delete(publish);
		},
		setLevel(level) {
			threshold = logLevels.indexOf(level);
		},
		level: () => logLevels[threshold] as LogLevel,
		async flush() {
			screen?.flush();
			await loaded;
			file?.flush();
		},
		async close() {
			publishers.clear();
			screen?.close();
			await loaded;
			file?.close();
		},
		lost: () => file?.lost() ?? 0,
	};
}
