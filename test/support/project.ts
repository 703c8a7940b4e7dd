// Where the checkout is, and how a process of its own runs one of its files.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The tree that these tests belong to: the checkout, or what scripts/build-tests.mjs compiled of it. */
const TREE = fileURLToPath(new URL("../../", import.meta.url));
const IS_COMPILED = import.meta.url.endsWith(".js");

/** The checkout, with package.json, proto/ and docs/. */
export const PROJECT = checkoutAbove(TREE);

/**
 * The arguments with which `node` runs a file of this tree from any folder of the checkout.
 *
 * @param path such as `src/main.ts`
 */
export function scriptArguments(path: `${"src" | "test" | "bench"}/${string}.ts`): readonly string[] {
  return IS_COMPILED ? [join(TREE, path.replace(/\.ts$/, ".js"))] : ["--import", "tsx", join(TREE, path)];
}

/**
 * The arguments with which `node` runs the program `arbor` as modules of their own, and not as the bundle that is shipped.
 */
export function argumentsWithoutBundle(): readonly string[] {
  return IS_COMPILED ? [join(TREE, "src/unbundled.js")] : scriptArguments("src/main.ts");
}

/**
 * The environment of this process for a command: without the settings of the user who runs the tests and the mark of
 * Node's test runner.
 */
export function environmentWithoutSettings(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(ARBOR_.*|NODE_TEST_CONTEXT)$/.test(name));
  // Servers that run at the same time cannot all have the default port of the metrics, and would say so.
  return { ...Object.fromEntries(kept), ARBOR_METRICS_LISTEN: "off" };
}

function checkoutAbove(directory: string): string {
  return existsSync(join(directory, "package-lock.json")) ? directory : checkoutAbove(dirname(directory));
}
