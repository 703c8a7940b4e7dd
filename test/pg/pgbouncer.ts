// PgBouncer before a PostgreSQL server.
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { spawn } from "../support/child-process.js";
import { freePort } from "../support/free-port.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";

const PGBOUNCER = "/usr/sbin/pgbouncer";

/** Why tests of a pooler are left out on this machine; false where they run. */
export const withoutPgBouncer = !existsSync(PGBOUNCER) && `${PGBOUNCER} is not installed`;

/** What lets connections pass whose limits PgBouncer cannot keep. */
export const IGNORE_LIMITS =
  "ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout, extra_float_digits";

export interface PgBouncer {
  /** The URL through it of a database on the server. */
  through(url: string): string;
  stop(): void;
}

/**
 * Starts PgBouncer, which gives three sessions of each database for a transaction at a time.
 *
 * @param url of any database on the server
 * @param more further lines of its configuration
 */
export async function startPgBouncer(url: string, more: readonly string[] = []): Promise<PgBouncer> {
  const { hostname, port: serverPort, username } = new URL(url);
  const directory = tempDir();
  chmodSync(directory, 0o755);
  const port = await freePort();
  const file = join(directory, "pgbouncer.ini");
  const lines = [
    "[databases]",
    `* = host=${hostname} port=${serverPort} user=${username}`,
    "[pgbouncer]",
    ...["listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "auth_type = any"],
    ...["pool_mode = transaction", "default_pool_size = 3", ...more],
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  // It does not run as root.
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const child = spawn(PGBOUNCER, [file], { stdio: ["ignore", "ignore", "pipe"], ...user });
  const stop = () => void child.kill("SIGKILL");
  process.once("exit", stop);
  let log = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    // It writes a line for each connection.
    if (log.length < 10_000) log += chunk.toString();
  });
  await waitUntil(() => /process up/.test(log), 10_000);
  // Whoever does not stop it has it until the end of the process.
  child.unref();
  (child.stderr as Socket | null)?.unref();
  return {
    through(direct) {
      const pooled = new URL(direct);
      pooled.host = `127.0.0.1:${port}`;
      return pooled.href;
    },
    stop,
  };
}
