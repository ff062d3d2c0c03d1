import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Suspense, useState } from "react";
import { BrowserRouter, Navigate, Route, Routes } from "react-router";
import { ApiError } from "../lib/api.ts";
import { part } from "../lib/part.ts";
import { FaultBoundary } from "./fault.tsx";
import { Gate } from "./gate.tsx";
import { NotFound } from "./not-found.tsx";
import { Splash } from "./splash.tsx";
import { theme, variables } from "./theme.ts";

const ChatPage = part(() => {
	// Both at once: the first answer on the page needs the second.
	void import("../ui/markdown.tsx").catch(() => {});
	return import("../features/chat/chat-page.tsx");
});
const ConsolePage = part(() => import("../features/console/console-page.tsx"));
const SettingsPage = part(() => import("../features/settings/settings-page.tsx"));
const SetupPage = part(() => import("../features/setup/setup-page.tsx"));
const LoginPage = part(() => import("../features/login/login-page.tsx"));

export function App({ setupCode }: { setupCode: string | null }) {
	const [queries] = useState(
		() =>
			new QueryClient({
				defaultOptions: {
					queries: {
						refetchOnWindowFocus: false,
						// A clear answer is not asked for again; silence is, a few times.
						retry: (count, error) => !(error instanceof ApiError) && count < 2,
						retryDelay: (attempt) => Math.min(4000, 500 * 2 ** attempt),
					},
				},
			}),
	);
	return (
		<MantineProvider theme={theme} cssVariablesResolver={variables} defaultColorScheme="auto">
			<FaultBoundary>
				<QueryClientProvider client={queries}>
					<BrowserRouter>
						<Suspense fallback={<Splash />}>
							<Routes>
								<Route path="/setup" element={<SetupPage code={setupCode} />} />
								<Route path="/login" element={<LoginPage />} />
								<Route element={<Gate />}>
									<Route path="/" element={<Navigate to="/chat" replace />} />
									<Route path="/chat" element={<ChatPage />} />
									<Route path="/chat/:id" element={<ChatPage />} />
									<Route path="/console" element={<Navigate to="/console/usage" replace />} />
									<Route path="/console/:tab" element={<ConsolePage />} />
									<Route path="/settings" element={<SettingsPage />} />
									<Route path="*" element={<NotFound />} />
								</Route>
							</Routes>
						</Suspense>
					</BrowserRouter>
				</QueryClientProvider>
			</FaultBoundary>
		</MantineProvider>
	);
}
