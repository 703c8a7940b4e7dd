// A stock registry without credentials, for tests of its events and of reads from it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { REGISTRY } from "./registry.js";

/** A running registry. */
export interface BareRegistry {
  readonly url: string;
  /** Its `host:port`, as in the names of images. */
  readonly host: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** How to start one. */
export interface BareRegistryOptions {
  /** A directory of its own, which it leaves its images in. */
  readonly directory: string;
  /** The webhook of its events, and the secret that it sends. */
  readonly notify?: { readonly url: string; readonly secret: string };
  /** Further sections of its configuration, as YAML. */
  readonly sections?: string;
}

/** Starts it on a free port. */
export async function startBareRegistry({
  directory,
  notify,
  sections = "",
}: BareRegistryOptions): Promise<BareRegistry> {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, "registry.yml");
  const storage = { filesystem: { rootdirectory: join(directory, "storage") }, delete: { enabled: true } };
  const endpoint = notify && {
    name: "arbor",
    url: notify.url,
    headers: { Authorization: [`Bearer ${notify.secret}`] },
    timeout: "5s",
    threshold: 3,
    backoff: "200ms",
    ignore: { actions: ["pull", "mount"] },
  };
  const config = {
    version: 0.1,
    log: { level: "info" },
    storage: { ...storage, maintenance: { uploadpurging: { enabled: false } } },
    http: { addr: "127.0.0.1:0", secret: "a secret of this test alone" },
    ...(endpoint && { notifications: { endpoints: [endpoint] } }),
  };
  // YAML holds all of JSON, a member a line here so that sections can follow.
  const lines = Object.entries(config).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  writeFileSync(file, `${lines.join("\n")}\n${sections}`);
  const child = spawn(REGISTRY, ["serve", file], { stdio: ["ignore", "ignore", "pipe"] });
  const closed = once(child, "close");
  const log: string[] = [];
  const address = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (log.length < 50) log.push(line);
      const found = /listening on (127\.0\.0\.1:\d+)/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("error", reject);
    void closed.then(([code]) => reject(new Error(`the registry ended with ${code}: ${log.join("\n")}`)));
  });
  return {
    url: `http://${address}`,
    host: address,
    pid: child.pid ?? 0,
    async stop() {
      child.kill("SIGTERM");
      await closed;
    },
  };
}
