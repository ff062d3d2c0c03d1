import "./app/mantine.css";
import "./app/tokens.css";
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { startI18n } from "./lib/i18n.ts";
import { setupCodeOf } from "./lib/setup-code.ts";

// First of all: a one-time code must not stay in the address bar or the history.
const setupCode = window.location.hash.startsWith("#setup=") ? setupCodeOf(window.location.hash) : null;
if (setupCode) window.history.replaceState(null, "", "/setup");

const root = document.getElementById("root");
if (root) void startI18n().then(() => createRoot(root).render(<App setupCode={setupCode} />));
