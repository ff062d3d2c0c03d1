// The server, as it serves, in the process that notes what the engine compiles of it. Arguments: its folder, then its own.
const { join } = require("node:path");
const { setFlagsFromString } = require("node:v8");

const [, , dir, ...rest] = process.argv;
const { createLoader, writeCompiled } = require(join(dir, "loader.js"));
process.argv = [process.argv[0], join(dir, "main.js"), ...rest];

const loaded = [];
const load = createLoader({ dir, onLoaded: (one) => loaded.push(one) });
// What ran only at the start must still be there at the end. The flag is taken back before anything is written: it would not fit otherwise.
setFlagsFromString("--no-flush-bytecode");
process.on("exit", (code) => {
	setFlagsFromString("--flush-bytecode");
	if (code === 0) writeCompiled(dir, loaded);
});
load("program.js");
