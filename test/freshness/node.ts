// A server that shares its database with others: `MODE SETTINGS`, the settings as JSON. It writes its URL. In the mode
// `control` it keeps what it has read for a second, as a cache would that does not notice changes of other processes.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { GrantReader } from "../../src/store/iam/access.js";
import { Groups } from "../../src/store/iam/groups.js";
import { startHarness } from "../support/harness.js";

const KEPT_MS = 1_000;

const [mode = "", text = "{}"] = process.argv.slice(2);
const settings = JSON.parse(text) as Readonly<Record<string, string>>;
if (mode === "control") {
  keep(GrantReader.prototype, "findGrantsAt");
  keep(GrantReader.prototype, "findAllGrants");
  keep(GrantReader.prototype, "findIdentity");
  keep(Groups.prototype, "find");
}
// Each server locks a file of its own, so that several use one directory, as workers do.
if (settings.data !== undefined) rmSync(join(settings.data, "serve.lock"), { force: true });
const { url } = await startHarness(settings);
process.stdout.write(`${JSON.stringify({ url })}\n`);

function keep<Name extends string>(part: { readonly [K in Name]: (...args: never[]) => unknown }, name: Name): void {
  const kept = new Map<string, { readonly untilMs: number; readonly found: unknown }>();
  const read = part[name] as (...args: readonly unknown[]) => unknown;
  Object.assign(part, {
    [name](this: unknown, ...args: unknown[]) {
      const key = JSON.stringify(args);
      const known = kept.get(key);
      if (known !== undefined && performance.now() < known.untilMs) return known.found;
      const found = read.apply(this, args);
      kept.set(key, { untilMs: performance.now() + KEPT_MS, found });
      return found;
    },
  });
}
