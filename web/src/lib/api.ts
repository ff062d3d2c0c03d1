/** The REST side of the contract, one function a call. Errors are `ApiError` (the server said no) or `Unreachable` (it said nothing). */
import type {
	AlertItem,
	Approval,
	Attachment,
	Call,
	CallDetail,
	Conversation,
	EventItem,
	FuseDay,
	Message,
	ModelEntry,
	ModelTestResult,
	PriceItem,
	Problem,
	Setup,
	SetupInfo,
	Status,
	Turn,
	TurnSummary,
	UsageRow,
} from "../../../server/http/contract.ts";

export class ApiError extends Error {
	readonly problem: Problem;
	constructor(problem: Problem) {
		super(problem.detail ?? problem.title);
		this.name = "ApiError";
		this.problem = problem;
	}
}

export class Unreachable extends Error {
	constructor(cause: unknown) {
		super("The daemon does not answer", { cause });
		this.name = "Unreachable";
	}
}

interface CallOptions {
	method?: string;
	body?: unknown;
	signal?: AbortSignal | undefined;
	headers?: Record<string, string>;
}

async function call<T>(path: string, { method = "GET", body, signal, headers = {} }: CallOptions = {}): Promise<T> {
	const form = body instanceof FormData;
	let response: Response;
	try {
		response = await fetch(path, {
			method,
			credentials: "same-origin",
			headers: { accept: "application/json", ...(body === undefined || form ? {} : { "content-type": "application/json" }), ...headers },
			...(body === undefined ? {} : { body: form ? body : JSON.stringify(body) }),
			...(signal ? { signal } : {}),
		});
	} catch (error) {
		if (signal?.aborted) throw error;
		throw new Unreachable(error);
	}
	if (!response.ok) throw new ApiError(await readProblem(response));
	if (response.status === 204) return undefined as T;
	const text = await response.text();
	return (text === "" ? undefined : JSON.parse(text)) as T;
}

async function readProblem(response: Response): Promise<Problem> {
	const fallback: Problem = {
		type: "about:blank",
		title: response.statusText || `HTTP ${response.status}`,
		status: response.status,
		code: `http-${response.status}`,
	};
	try {
		const body: unknown = await response.json();
		return typeof body === "object" && body !== null && "code" in body ? { ...fallback, ...(body as Problem) } : fallback;
	} catch {
		return fallback;
	}
}

const part = encodeURIComponent;
export type Config = Record<string, unknown>;
export type UsageBy = "day" | "source" | "model" | "conversation";

/** `?a=1&b=2` of what is set; nothing of nothing. */
function query(values: Record<string, string | number | null | undefined>): string {
	const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
	return set.length === 0 ? "" : `?${set.map(([name, value]) => `${name}=${part(String(value))}`).join("&")}`;
}

export const api = {
	status: (signal?: AbortSignal) => call<Status>("/api/v1/status", { signal }),
	login: (username: string, password: string) => call<void>("/api/v1/login", { method: "POST", body: { username, password } }),
	logout: () => call<void>("/api/v1/logout", { method: "POST" }),
	setupInfo: (signal?: AbortSignal) => call<SetupInfo>("/api/v1/setup", { signal }),
	setup: (body: Setup) => call<void>("/api/v1/setup", { method: "POST", body }),
	testModel: (entry: ModelEntry | { id: string }, signal?: AbortSignal, code?: string) =>
		call<ModelTestResult>("/api/v1/models/test", { method: "POST", body: entry, signal, headers: code ? setupHeaders(code) : {} }),
	conversations: (signal?: AbortSignal) => call<{ conversations: Conversation[] }>("/api/v1/conversations", { signal }),
	searchConversations: (query: string, signal?: AbortSignal) =>
		call<{ conversations: Conversation[] }>(`/api/v1/conversations?query=${part(query.slice(0, 200))}`, { signal }),
	createConversation: () => call<{ id: string; title: string }>("/api/v1/conversations", { method: "POST", body: {} }),
	patchConversation: (id: string, change: { title?: string; pinned?: boolean; model?: string | null }) =>
		call<Conversation>(`/api/v1/conversations/${part(id)}`, { method: "PATCH", body: change }),
	deleteConversation: (id: string) => call<void>(`/api/v1/conversations/${part(id)}`, { method: "DELETE" }),
	messages: (conversation: string, before: string | null, signal?: AbortSignal) =>
		call<{ messages: Message[] }>(
			`/api/v1/conversations/${part(conversation)}/messages?limit=50${before ? `&before=${part(before)}` : ""}`,
			{ signal },
		),
	stopTurn: (conversation: string) => call<void>(`/api/v1/conversations/${part(conversation)}/stop`, { method: "POST" }),
	turn: (id: string, signal?: AbortSignal) => call<Turn>(`/api/v1/turns/${part(id)}`, { signal }),
	turns: (filter: { before?: string | null; limit?: number }, signal?: AbortSignal) =>
		call<{ turns: TurnSummary[] }>(`/api/v1/turns${query(filter)}`, { signal }),
	/** Both days are in the configured zone and belong to the span. */
	usage: (span: { from: string; to: string; by: UsageBy }, signal?: AbortSignal) =>
		call<{ rows: UsageRow[] }>(`/api/v1/usage${query(span)}`, { signal }),
	fuse: (signal?: AbortSignal) => call<FuseDay>("/api/v1/fuse", { signal }),
	raiseFuse: (raise: { tokens?: number; cost?: number }) => call<unknown>("/api/v1/fuse/raise", { method: "POST", body: raise }),
	prices: (signal?: AbortSignal) => call<{ prices: PriceItem[] }>("/api/v1/prices", { signal }),
	alerts: (filter: { state?: AlertItem["state"]; before?: string | null; limit?: number }, signal?: AbortSignal) =>
		call<{ alerts: AlertItem[] }>(`/api/v1/alerts${query(filter)}`, { signal }),
	ackAlert: (id: string) => call<AlertItem>(`/api/v1/alerts/${part(id)}/ack`, { method: "POST" }),
	calls: (filter: { turn?: string | null; source?: string | null; before?: string | null; limit?: number }, signal?: AbortSignal) =>
		call<{ calls: Call[] }>(`/api/v1/calls${query(filter)}`, { signal }),
	call: (id: string, signal?: AbortSignal) => call<CallDetail>(`/api/v1/calls/${part(id)}`, { signal }),
	events: (filter: { after: number; level?: EventItem["level"]; type?: string; limit?: number }, signal?: AbortSignal) =>
		call<{ events: EventItem[] }>(`/api/v1/events${query(filter)}`, { signal }),
	/** What waits for a decision. */
	allApprovals: (signal?: AbortSignal) => call<{ approvals: Approval[] }>("/api/v1/approvals?state=all&limit=200", { signal }),
	approvals: (signal?: AbortSignal) => call<{ approvals: Approval[] }>("/api/v1/approvals?limit=200", { signal }),
	decideApproval: (id: string, decision: "allow" | "deny") =>
		call<Approval>(`/api/v1/approvals/${part(id)}`, { method: "POST", body: { decision, scope: "once" } }),
	upload: (file: File, signal?: AbortSignal) => {
		const form = new FormData();
		form.append("file", file, file.name);
		return call<Attachment>("/api/v1/assets", { method: "POST", body: form, signal });
	},
	config: (signal?: AbortSignal) => call<Config>("/api/v1/config", { signal }),
	saveConfig: (config: Config) => call<{ restartNeeded?: string[] } | undefined>("/api/v1/config", { method: "PUT", body: config }),
};

/** Before a password exists, the one-time code stands in for a login. */
function setupHeaders(code: string): Record<string, string> {
	return { "x-openlani-setup": code };
}

/** Where the bytes of a stored attachment are. */
export function assetUrl(sha256: string): string {
	return `/api/v1/assets/${sha256}`;
}
