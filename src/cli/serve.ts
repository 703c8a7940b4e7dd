import { startApp } from "../app.js";
import type { Settings } from "../config.js";

/**
 * Runs the service until SIGTERM or SIGINT, then stops it gracefully; a second signal ends it at
 * once. Standard output carries one line, when it is ready.
 */
export async function serve(settings: Settings): Promise<void> {
  const app = await startApp({ settings });
  process.stdout.write(`arbor listening on ${app.url}\n`);
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1));
        resolve();
      });
    }
  });
  await app.stop();
}
