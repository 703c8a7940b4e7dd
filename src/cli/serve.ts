import { startApp } from "../app.js";
import type { Settings } from "../config.js";
import { untilStopped } from "./until-stopped.js";

/**
 * Runs the service until SIGTERM or SIGINT, then stops it gracefully; a second signal ends it at
 * once. Standard output carries one line, when it is ready.
 */
export async function serve(settings: Settings): Promise<void> {
  const app = await startApp({ settings });
  const stopped = untilStopped();
  process.stdout.write(`arbor listening on ${app.url}\n`);
  await stopped;
  await app.stop();
}
