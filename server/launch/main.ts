#!/usr/bin/env node
/** The first file of the built program: server/main.ts is loaded, and all that it needs. */
import { createLoader } from "./loader.ts";

createLoader({ dir: import.meta.dirname })("program.js");
