// `arbor serve --workers` with limits of a test, as a process of its own: node parent-process.js OPTIONS, in JSON.
import { fileURLToPath } from "node:url";
import { startParent } from "../../../src/app/workers/parent.js";
import type { StartLimits } from "../../../src/app/workers/workforce.js";
import { resolveSettings } from "../../../src/config/config.js";
import { createLogger, flushLog } from "../../../src/telemetry/logger.js";

/** What a test chooses. */
export interface ParentProcessOptions {
  readonly flags: Readonly<Record<string, string>>;
  readonly startLimits?: StartLimits;
  /** How many connections may wait for a worker. */
  readonly maxWaiting?: number;
  /** Serves connections in the order of their arrival, whatever their addresses: the control. */
  readonly isInOrder?: boolean;
}

const { flags, startLimits, maxWaiting, isInOrder } = JSON.parse(process.argv[2] ?? "") as ParentProcessOptions;
const { url: here } = import.meta;
// Workers are started as the program is.
process.argv[1] = fileURLToPath(new URL(`../../../src/main${here.slice(here.lastIndexOf("."))}`, here));
const logger = createLogger("info");
const service = await startParent({
  settings: resolveSettings({ flags, env: {} }),
  ignoredVariables: [],
  logger,
  count: 2,
  ...(startLimits && { startLimits }),
  queue: { ...(maxWaiting !== undefined && { maxWaiting }), ...(isInOrder && { keyOf: () => "all" }) },
});
process.once("SIGTERM", () => void service.stop().then(() => process.exit()));
service.failed?.catch(async (error: { readonly exitCode: number }) => {
  await flushLog(logger);
  process.exit(error.exitCode);
});
process.stdout.write(`arbor listening on ${service.url}\n`);
