// Runs a proxy with its configuration of deploy/proxies, changed only where a test must: addresses, the certificate, and
// for long streams the timeouts.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import { freePort } from "../support/free-port.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

/** Where the configurations are. */
export const PROXIES = join(PROJECT, "deploy/proxies");

/** A proxy that runs. */
export interface RunningProxy {
  readonly url: string;
  readonly port: number;
  /** What it wrote. */
  output(): string;
  stop(): Promise<void>;
}

interface ProxyKind {
  readonly file: string;
  /** What stands in the configuration once, and what a test has instead. */
  replacements(port: number): Readonly<Record<string, string>>;
  /** Matches each timeout of idle streams; the groups are what is before the seconds and what is after. */
  readonly timeouts: RegExp;
  command(file: string, directory: string): readonly string[];
}

const kinds = {
  nginx: {
    file: "nginx.conf",
    replacements: (port) => ({
      "listen 443 ssl http2;": `listen 127.0.0.1:${port} ssl http2;`,
      "worker_processes auto;": "worker_processes 1;",
    }),
    timeouts: /((?:grpc|proxy)_(?:read|send)_timeout )(\d+)s(;)/g,
    command: (file, directory) => [
      ...["nginx", "-p", directory, "-c", file],
      ...["-g", `daemon off; pid ${directory}/nginx.pid; error_log stderr warn;`],
    ],
  },
  haproxy: {
    file: "haproxy.cfg",
    replacements: (port) => ({ "bind :443 ssl": `bind 127.0.0.1:${port} ssl` }),
    timeouts: /(timeout (?:client|server) )(\d+)s()/g,
    command: (file) => ["haproxy", "-db", "-f", file],
  },
  caddy: {
    file: "Caddyfile",
    replacements: (port) => ({
      "https://arbor.example.com:443": `https://localhost:${port}`,
      "admin off": "admin off\n\tdefault_bind 127.0.0.1",
    }),
    timeouts: /((?:read|write)_timeout )(\d+)s()/g,
    command: (file) => ["caddy", "run", "--adapter", "caddyfile", "--config", file],
  },
} as const satisfies Readonly<Record<string, ProxyKind>>;

/** The proxies. */
export type ProxyName = keyof typeof kinds;
export const proxyNames = Object.keys(kinds) as readonly ProxyName[];

/** A certificate for localhost that lives an hour, made anew. */
export interface Certificate {
  readonly certFile: string;
  readonly cert: Buffer;
}

/** Makes a certificate that signs itself; the key is beside it, in a file whose name ends in `.key`. */
export function makeCertificate(): Certificate {
  const certFile = join(tempDir(), "tls.crt");
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", `${certFile}.key`];
  const { status, stderr } = spawnSync("openssl", ["req", "-x509", ...key, ...subject, "-days", "1", "-out", certFile]);
  if (status !== 0) throw new Error(`openssl failed: ${stderr}`);
  return { certFile, cert: readFileSync(certFile) };
}

/** Options of {@link startProxy}. */
export interface ProxyOptions {
  readonly certificate: Certificate;
  /** The port of the service on 127.0.0.1. */
  readonly target: number;
  /** That of its second node; without it the proxy has one. */
  readonly second?: number;
  /** Changes what the file says, after everything else. */
  readonly change?: (text: string) => string;
  /** What the timeouts of idle streams are made of; as they are unless set. */
  readonly scaleTimeout?: (seconds: number) => number;
}

/** Starts a proxy in front of a service, and waits until it answers. */
export async function startProxy(name: ProxyName, options: ProxyOptions): Promise<RunningProxy> {
  const kind: ProxyKind = kinds[name];
  const directory = tempDir();
  const port = await freePort();
  const file = join(directory, kind.file);
  writeFileSync(file, configure(name, port, options));
  const [program = "", ...args] = kind.command(file, directory);
  const env = { PATH: process.env.PATH, HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory };
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env, cwd: directory });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  await once(child, "spawn");
  try {
    await waitForTls(port, child);
  } catch (error) {
    child.kill("SIGKILL");
    throw new Error(`${name} does not answer: ${output}`, { cause: error });
  }
  return {
    ...{ url: `https://localhost:${port}`, port, output: () => output },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      // nginx and Caddy would wait for open streams after SIGTERM.
      child.kill("SIGINT");
      const killed = setTimeout(() => child.kill("SIGKILL"), 2_000);
      await exited;
      clearTimeout(killed);
    },
  };
}

function configure(name: ProxyName, port: number, options: ProxyOptions): string {
  const { certificate, target, second, scaleTimeout, change = (text) => text } = options;
  const kind: ProxyKind = kinds[name];
  let text = readFileSync(join(PROXIES, kind.file), "utf8");
  for (const [from, to] of Object.entries(kind.replacements(port))) {
    if (text.split(from).length !== 2) throw new Error(`${kind.file} must have ${from} once`);
    text = text.replace(from, to);
  }
  if (!/^[^#\n]*127\.0\.0\.1:8081/m.test(text)) throw new Error(`${kind.file} must have a second node`);
  text = (second === undefined ? text.replace(/^[^#\n]*127\.0\.0\.1:8081.*\n/gm, "") : text)
    .replaceAll("127.0.0.1:8081", `127.0.0.1:${second}`)
    .replaceAll("127.0.0.1:8080", `127.0.0.1:${target}`)
    .replace("/etc/arbor/tls/tls.key", `${certificate.certFile}.key`)
    .replace("/etc/arbor/tls/tls.crt", certificate.certFile);
  text = change(text);
  if (scaleTimeout === undefined) return text;
  if (text.search(kind.timeouts) < 0) throw new Error(`${kind.file} has no timeout of idle streams`);
  return text.replace(kind.timeouts, (_, before: string, seconds: string, after: string) => {
    return `${before}${Math.round(scaleTimeout(Number(seconds)) * 1_000)}ms${after}`;
  });
}

async function waitForTls(port: number, child: ChildProcess): Promise<void> {
  let last: unknown;
  for (let tries = 0; tries < 200 && child.exitCode === null; tries++) {
    const socket = connect({ host: "127.0.0.1", port, servername: "localhost", rejectUnauthorized: false });
    try {
      await once(socket, "secureConnect");
      return;
    } catch (error) {
      last = error;
    } finally {
      socket.destroy();
    }
    await sleep(50);
  }
  throw last ?? new Error("it ended");
}
