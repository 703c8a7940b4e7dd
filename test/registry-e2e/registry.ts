// The registry that Debian ships, or the program that REGISTRY_PROGRAM names, as a child process that trusts a running
// service by what `arbor registry configure` wrote.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { freePort } from "../support/free-port.js";
import { environmentWithoutSettings, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

/** How a registry is set up. */
export interface RegistryOptions {
  /** The data directory of the service, which must have been started there once. */
  readonly data: string;
  /** More flags of `arbor registry configure`, such as `["--registry-secret-file", file]`. */
  readonly flags?: readonly string[];
  /** Merged over the configuration, section by section. */
  readonly sections?: Readonly<Record<string, object>>;
}

/** A running registry. */
export interface Registry {
  /** Its host and port. */
  readonly host: string;
  readonly url: string;
  /** The directory of its storage. */
  readonly storage: string;
  /** The sections that `arbor registry configure` wrote. */
  readonly configured: Readonly<Record<string, unknown>>;
  stop(): Promise<void>;
}

/** What a program did. */
export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The program: that of Debian is of version 2.8. */
export const REGISTRY = process.env.REGISTRY_PROGRAM ?? "/usr/bin/docker-registry";
const SKOPEO = "/usr/bin/skopeo";

/** Why these tests cannot run here; false where they can. */
export const registryMissing: string | false =
  existsSync(REGISTRY) && existsSync(SKOPEO) ? false : `needs the packages docker-registry (${REGISTRY}) and skopeo`;

const START_MS = 15_000;

/** Configures a registry for the service, and starts it on a free port of 127.0.0.1. */
export async function startRegistry({ data, flags = [], sections = {} }: RegistryOptions): Promise<Registry> {
  const directory = tempDir();
  const { status, stderr } = await arbor(["registry", "configure", "--data", data, "--out", directory, ...flags]);
  if (status !== 0) throw new Error(`arbor registry configure: ${stderr}`);
  const configured = parse(readFileSync(join(directory, "arbor-registry.yml"), "utf8")) as Record<string, unknown>;
  const host = `127.0.0.1:${await freePort()}`;
  const storage = join(directory, "blobs");
  const config = {
    version: 0.1,
    log: { level: "error" },
    storage: { filesystem: { rootdirectory: storage }, delete: { enabled: true } },
    http: { addr: host },
    ...configured,
    ...sections,
  };
  const file = join(directory, "config.yml");
  writeFileSync(file, stringify(config), { mode: 0o600 });
  const child = spawn(REGISTRY, ["serve", file], { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4_000);
  });
  const url = `http://${host}`;
  await answering(url, child, () => log);
  return {
    host,
    url,
    storage,
    configured,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

/** Runs a command of this tree. */
export function arbor(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return outcomeOf(process.execPath, [...scriptArguments("src/main.ts"), ...args], env);
}

/**
 * Runs skopeo without any credentials but those in `args`.
 *
 * @param args with `--src-creds` and `--dest-creds` as needed
 */
export function skopeo(args: readonly string[]): Promise<Outcome> {
  const home = tempDir();
  return outcomeOf(SKOPEO, ["--insecure-policy", ...args], {
    HOME: home,
    XDG_RUNTIME_DIR: home,
    REGISTRY_AUTH_FILE: join(home, "none.json"),
  });
}

async function outcomeOf(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Outcome> {
  const child = spawn(command, [...args], {
    env: { ...environmentWithoutSettings(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  await once(child, "close");
  return { status: child.exitCode, stdout, stderr };
}

async function answering(url: string, child: ChildProcess, log: () => string): Promise<void> {
  for (const startMs = Date.now(); Date.now() - startMs < START_MS; ) {
    if (child.exitCode !== null) break;
    const status = await fetch(`${url}/v2/`).then(
      (response) => response.status,
      () => undefined,
    );
    if (status !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  child.kill("SIGKILL");
  throw new Error(`the registry did not start: ${log()}`);
}
