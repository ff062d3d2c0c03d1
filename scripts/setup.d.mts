/** Types of setup.mjs for the tests and benches that use it. */
export const ROOT: string;
export function setup(options?: { root?: string; targets?: ("server" | "page")[] }): Promise<void>;
export function main(work: () => Promise<void>): Promise<void>;
