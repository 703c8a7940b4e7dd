// `arbor demo`: a service with an OpenID Provider to sign in with, and a sample organisation.
import { mkdtempSync, rmSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type App, startApp } from "../../../app/app.js";
import { connectTo, exchangedToken } from "../../../client/index.js";
import { isLoopback, resolveSettings, SettingsError, settings } from "../../../config/config.js";
import { resolveOrigin } from "../../../config/origin.js";
import { createDirectories } from "../../../kernel/directories.js";
import { CONSOLE_PATH } from "../../../kernel/web.js";
import { isConsoleBuilt } from "../../../transport/openapi/console.js";
import { replaceFile } from "../../shared-file.js";
import { waitForStop } from "../serve.js";
import {
  alice,
  createSampleResources,
  ensureRoot,
  type SampleOrganisation,
  sampleWrites,
  WORKLOAD_SUBJECT,
} from "./organisation.js";
import { type DemoProvider, startDemoProvider } from "./provider.js";
import { type DemoFacts, formatAnnouncement } from "./walkthrough.js";

/** The file that marks the directory of a demo. */
const MARK = "demo.json";
/** The client id of the service at the provider. */
const CLIENT_ID = "arbor";
/** How long the token with which Alice creates the organisation is valid, in seconds. */
const SETUP_S = 60;
/** How long the OIDC token of the workload is valid, in seconds, and how often it is renewed, in milliseconds. */
const LIFE_S = 900;
const RENEW_MS = 300_000;

export interface DemoFlags {
  readonly data?: string;
  readonly listen: string;
  /** Whether to open the console in a browser. */
  readonly open: boolean;
}

/**
 * Runs the demo until SIGTERM or SIGINT; a second signal ends it at once. It prints commands to try to standard output, and
 * opens the console in a browser of the person at the terminal.
 *
 * @throws SettingsError for an address that other machines can reach
 * @throws Error when the address is taken, or the directory has other content
 */
export async function demoCommand({ data, listen, open }: DemoFlags): Promise<void> {
  const directory = data === undefined ? createTemporaryDirectory() : resolve(data);
  const demo = await startDemo({ data: directory, listen });
  // Before the announcement, because a user may stop the demo right after it.
  const stopped = waitForStop();
  const isBuilt = isConsoleBuilt();
  process.stdout.write(formatAnnouncement(demo, { kept: data !== undefined, hasConsole: isBuilt }));
  if (open && isBuilt && process.stdout.isTTY && hasDisplay(process)) await openBrowser(`${demo.url}${CONSOLE_PATH}`);
  await stopped;
  await demo.stop();
}

/** Whether a browser can be seen by the person who runs a program. */
export function hasDisplay({ platform, env }: Pick<NodeJS.Process, "platform" | "env">): boolean {
  const names = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"];
  return platform !== "linux" || names.some((name) => (env[name] ?? "") !== "");
}

async function openBrowser(url: string): Promise<void> {
  const { default: open } = await import("open");
  // The person can open the page by hand.
  await open(url).catch(() => undefined);
}

// Removed when the process ends, except by a kill.
function createTemporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "arbor-demo-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export interface DemoOptions {
  /** The absolute path of its directory; created if missing. */
  readonly data: string;
  /** The address of the service, such as `127.0.0.1:8080`. */
  readonly listen: string;
}

/** A running demo. */
export interface Demo extends DemoFacts {
  stop(): Promise<void>;
}

/**
 * Starts the service and the provider, and creates what is missing of the sample organisation.
 *
 * @throws SettingsError for an address that other machines can reach
 * @throws Error when an address is taken, or the directory has other content than a demo
 */
export async function startDemo({ data, listen }: DemoOptions): Promise<Demo> {
  assertLocal(listen);
  const directory = await openDemoDirectory(data);
  const started: { stop(): Promise<void> }[] = [];
  const stop = async () => {
    for (const one of started.splice(0).reverse()) await one.stop();
  };
  try {
    const provider = await startProvider(directory);
    started.push(provider);
    const { issuer } = provider;
    const { app, url } = await startService(directory, issuer, listen);
    started.push(app);
    provider.serve(CLIENT_ID, `${url}/oauth/callback`);
    const organisation = await createOrganisation(app, url, provider);
    const workloadToken = join(data, "ci.token");
    const claims = { sub: WORKLOAD_SUBJECT, aud: url };
    const onProblem = (error: unknown) => process.stderr.write(`arbor: ${workloadToken}: ${error}\n`);
    started.push(await renewTokenFile(workloadToken, (lifeS) => provider.sign(claims, lifeS), onProblem));
    return { url, issuer, data, workloadToken, organisation, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function assertLocal(listen: string): void {
  try {
    const { host } = settings.listen.parse(listen);
    // Node's HTTP/2 client omits the brackets of IPv6 addresses, so `arbor iam` could not connect.
    if (isLoopback(host) && !host.includes(":")) return;
  } catch (error) {
    throw new SettingsError([`--listen ${(error as Error).message}`]);
  }
  const rule = "--listen must be 127.0.0.1 or localhost with a port";
  throw new SettingsError([`${rule}: the demo does not ask for passwords, so it is for this machine only`]);
}

async function startProvider(demoDirectory: DemoDirectory): Promise<DemoProvider> {
  const { directory, providerPort } = demoDirectory;
  const provider = await startDemoProvider(providerPort).catch((error: unknown) => {
    const advice = `the login provider of the demo in ${directory}. Perhaps that demo runs already`;
    throw isInUse(error) ? new Error(`127.0.0.1:${providerPort} is taken, which is ${advice}`) : error;
  });
  await markDemoDirectory(demoDirectory, provider.port);
  return provider;
}

async function startService(
  { directory }: DemoDirectory,
  issuer: string,
  listen: string,
): Promise<{ app: App; url: string }> {
  const loginProviders = join(directory, "login-providers.json");
  const provider = { name: "demo", title: "the demo's login", issuer, clientId: CLIENT_ID };
  await replaceFile(loginProviders, `${JSON.stringify([provider], undefined, 2)}\n`, 0o600);
  const flags = {
    data: directory,
    listen,
    loginProviders,
    trustedIssuers: issuer,
    logLevel: "warn",
    accessLog: false,
    // A real installation may use the default address.
    metricsListen: "off",
  };
  // Nothing is read from the environment, which may be that of a real installation.
  const resolved = resolveSettings({ flags, env: {} });
  const app = await startApp({ settings: resolved }).catch((error: unknown) => {
    throw isInUse(error) ? new Error(`${listen} is taken: choose another with --listen, such as 127.0.0.1:0`) : error;
  });
  return { app, url: resolveOrigin(resolved, { ...resolved.listen, port: Number(new URL(app.url).port) }).baseUrl };
}

async function createOrganisation(app: App, url: string, provider: DemoProvider): Promise<SampleOrganisation> {
  const { store, clock } = app.installation;
  const { issuer } = provider;
  const root = await ensureRoot(store, issuer, clock());
  const upstream = () => provider.sign({ sub: alice.subject, aud: CLIENT_ID }, SETUP_S);
  // An exchange without an identity returns a token of the person.
  const token = exchangedToken({ issuer: url, identity: "", audience: url, upstream });
  const connection = connectTo({ baseUrl: url, token, retryWrites: sampleWrites });
  try {
    return await createSampleResources(connection, root, issuer);
  } finally {
    connection.close();
  }
}

function isInUse(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EADDRINUSE";
}

/** The directory of a demo. The identities of people contain the provider's port, so a restart needs the same port. */
interface DemoDirectory {
  /** Its absolute path. */
  readonly directory: string;
  /** The port of the provider; 0 in a new directory. */
  readonly providerPort: number;
}

/**
 * Opens a directory that is empty, missing or that of a demo. Any other may be a real installation, which must not get
 * an owner who signs in without a password.
 *
 * @throws Error for any other directory
 */
async function openDemoDirectory(directory: string): Promise<DemoDirectory> {
  createDirectories(directory, 0o700);
  const names = await readdir(directory);
  if (names.length === 0) return { directory, providerPort: 0 };
  const providerPort = names.includes(MARK) ? parsePort(await readFile(join(directory, MARK), "utf8")) : undefined;
  if (providerPort !== undefined) return { directory, providerPort };
  throw new Error(`${directory} has other content than a demo: choose an empty directory with --data, or omit --data`);
}

/** Marks the directory as that of a demo, with the port of its provider. */
async function markDemoDirectory({ directory }: DemoDirectory, providerPort: number): Promise<void> {
  await replaceFile(join(directory, MARK), `${JSON.stringify({ providerPort })}\n`, 0o600);
}

function parsePort(text: string): number | undefined {
  try {
    const { providerPort } = JSON.parse(text) as { readonly providerPort?: unknown };
    return Number.isInteger(providerPort) ? (providerPort as number) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Keeps a valid OIDC token in a file that only its owner can read, as platforms do for their workloads.
 *
 * @param sign signs a token that is valid for a number of seconds
 * @param onProblem called when the file could not be written; the next renewal tries again
 * @returns `stop` resolves after the last write
 */
export async function renewTokenFile(
  file: string,
  sign: (lifeS: number) => Promise<string>,
  onProblem: (error: unknown) => void,
): Promise<{ stop(): Promise<void> }> {
  const renew = async () => replaceFile(file, `${await sign(LIFE_S)}\n`, 0o600);
  let writing = renew();
  await writing;
  const timer = setInterval(() => {
    writing = writing.then(renew).catch(onProblem);
  }, RENEW_MS);
  return {
    async stop() {
      clearInterval(timer);
      await writing;
    },
  };
}
