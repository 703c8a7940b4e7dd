// The service under test, built and started by its own command.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { openInstallation } from "../src/app/installation.js";
import { resolveSettings } from "../src/config/config.js";
import { issueToken } from "../src/issuer/tokens.js";
import { randomIds } from "../src/kernel/ids.js";
import { freePort, type Running, startServer } from "./processes.js";
import { IDENTITIES, identityUid, type Seeded } from "./seed.js";

/** The service, and tokens for it. */
export interface Service {
  readonly url: string;
  readonly server: Running;
  /** One per identity, in the order of the identities. */
  readonly tokens: readonly string[];
  /** The `main.js` that was started. */
  readonly main: string;
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Builds the service and starts it on a seeded data directory.
 *
 * @param built a built `main.js` to start, in place of building one
 * @param settings further flags
 */
export async function startService(seeded: Seeded, built?: string, settings: readonly string[] = []): Promise<Service> {
  if (built === undefined)
    execFileSync("npm", ["run", "-s", "build"], { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  const listen = `127.0.0.1:${await freePort()}`;
  const url = `http://${listen}`;
  const tokens = await tokensFor(seeded, url);
  const { directory: data } = seeded;
  const main = built ?? `${ROOT}dist/main.js`;
  const args = [main, "serve", "--no-access-log", "--listen", listen, "--data", data, ...settings];
  return { url, server: await startServer(args), tokens, main };
}

async function tokensFor({ directory, tree }: Seeded, url: string): Promise<string[]> {
  const installation = await openInstallation({
    mode: "create",
    settings: resolveSettings({ flags: { data: directory }, env: {} }),
  });
  try {
    const nowMs = Date.now();
    const tokens: string[] = [];
    for (let n = 0; n < IDENTITIES; n++) {
      const identity = identityUid(tree, n);
      const request = { issuer: url, audience: url, identity, lifeS: 3600, atMs: nowMs };
      tokens.push(await issueToken(request, installation.keys, randomIds));
    }
    return tokens;
  } finally {
    await installation.close();
  }
}
