// Runs a Prometheus server with rules and targets.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../support/free-port.js";
import { tempDir } from "../support/temp-dir.js";

/** A Prometheus server, which scrapes every two seconds and evaluates its rules every second. */
export interface Prometheus {
  /** Reads a path of its API, such as `targets`. */
  api<T>(path: string): Promise<T>;
  stop(): Promise<void>;
}

/** Starts a server; `targets` are addresses such as `127.0.0.1:9464`. */
export async function startPrometheus(rulesFile: string, targets: readonly string[]): Promise<Prometheus> {
  const directory = tempDir();
  const file = join(directory, "prometheus.yml");
  const config = {
    global: { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" },
    rule_files: [rulesFile],
    scrape_configs: [{ job_name: "arbor", static_configs: [{ targets }] }],
  };
  writeFileSync(file, JSON.stringify(config));
  const listen = `127.0.0.1:${await freePort()}`;
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${directory}/data`, `--web.listen-address=${listen}`];
  const child = spawn("prometheus", args, { stdio: "ignore" });
  await once(child, "spawn");
  return {
    async api<T>(path: string) {
      const response = await fetch(`http://${listen}/api/v1/${path}`, { signal: AbortSignal.timeout(5_000) });
      return ((await response.json()) as { data: T }).data;
    },
    async stop() {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}
