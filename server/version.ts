import packageJson from "../package.json" with { type: "json" };

/** This program's version, from package.json. */
export const version: string = packageJson.version;
