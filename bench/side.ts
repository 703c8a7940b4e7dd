// One side of a comparison of two checkouts: its built service on its own data directory, filled only
// through the command line and the API, so that any version can be a side.
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { writeGetGroup } from "./h2load.js";
import { type Cpus, freePort, type Running, startServer } from "./processes.js";

/** Every group but those of the last level has this many children. */
const FAN_OUT = 7;
const LEVELS = 3;

/** A service under load and its requests. */
export interface Side {
  readonly name: string;
  readonly url: string;
  /** Where its nodes listen; the first one is at {@link url}. */
  readonly urls: readonly string[];
  /** All nodes together. */
  readonly server: Pick<Running, "cpuUs" | "stop">;
  /** The root of the groups. */
  readonly group: string;
  /** The token of the organisation's owner. */
  readonly token: string;
  /** All groups, the root first. */
  readonly uids: readonly string[];
  /** The group that {@link frame} and {@link json} ask for. */
  readonly uid: string;
  /** A file with the address of every group, one per line. */
  readonly addresses: string;
  /** A file with the address of a page of 50 of these groups. */
  readonly list: string;
  /** A file with the request for one group as a gRPC frame. */
  readonly frame: string;
  /** A file with the same request in JSON. */
  readonly json: string;
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** Builds the service of a checkout. */
export async function build(checkout: string): Promise<void> {
  await run("npm", ["run", "-s", "build"], { cwd: checkout });
}

/**
 * Starts the built service of a checkout with an organisation of 400 groups.
 *
 * @param name the name of the side in the output
 * @param scratch an existing directory for its data
 * @param options.accessLog the value of `--access-log`, off unless given; lines go to standard error
 * @param options.env variables of the service
 * @param options.databaseUrl an empty PostgreSQL database to use in place of SQLite
 * @param options.nodes how many nodes share it
 * @param options.settings further flags of the service
 * @param options.cpus where it runs
 */
export async function startSide(
  name: string,
  checkout: string,
  scratch: string,
  {
    accessLog,
    env = {},
    databaseUrl,
    nodes = 1,
    settings = [],
    cpus,
  }: {
    readonly accessLog?: string | undefined;
    readonly env?: Readonly<Record<string, string>>;
    readonly databaseUrl?: string | undefined;
    readonly nodes?: number;
    readonly settings?: readonly string[];
    readonly cpus?: Cpus;
  } = {},
): Promise<Side> {
  const directory = mkdtempSync(join(scratch, `${name}-`));
  const listen: string[] = [];
  for (let n = 0; n < nodes; n++) listen.push(`127.0.0.1:${await freePort()}`);
  const urls = listen.map((address) => `http://${address}`);
  const [url = ""] = urls;
  const main = join(checkout, "dist", "main.js");
  const where = [...locate(directory, databaseUrl), "--base-url", url];
  const made = await run(process.execPath, [main, "bootstrap", "--org", "bench", "--json", ...where], {
    cwd: checkout,
  });
  const { group, token } = JSON.parse(made.stdout) as { group: string; token: string };
  // Versions before 0.6.0 know the switch alone.
  const log = accessLog === undefined ? "--no-access-log" : `--access-log=${accessLog}`;
  const running: Running[] = [];
  const server = {
    cpuUs: () => running.reduce((sum, node) => sum + node.cpuUs(), 0),
    stop: async () => void (await Promise.all(running.map((node) => node.stop()))),
  };
  try {
    for (const address of listen) {
      const args = [main, "serve", log, ...where, "--listen", address, ...settings];
      running.push(await startServer(args, checkout, env, cpus));
    }
    const uids = await createTree(url, token, group);
    const addresses = join(directory, "addresses.txt");
    // The deepest first: h2load begins with the first address in each run, and most groups are deep.
    writeFileSync(
      addresses,
      uids
        .toReversed()
        .map((uid) => `${url}/iam/v2beta1/groups/${uid}`)
        .join("\n"),
    );
    const list = join(directory, "list.txt");
    writeFileSync(list, `${url}/iam/v2beta1/groups?page_size=50&order_by=name`);
    const uid = uids.at(-1) ?? group;
    const frame = writeGetGroup(directory, uid);
    const json = join(directory, "get-group.json");
    writeFileSync(json, JSON.stringify({ uid }));
    const stop = async () => {
      await server.stop();
      rmSync(directory, { recursive: true });
    };
    return { name, url, urls, server, group, token, uids, uid, addresses, list, frame, json, stop };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

function locate(directory: string, databaseUrl: string | undefined): string[] {
  if (databaseUrl === undefined) return ["--data", join(directory, "data")];
  const masterKey = join(directory, "master.key");
  writeFileSync(masterKey, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  return ["--database-url", databaseUrl, "--master-key-file", masterKey];
}

async function createTree(url: string, token: string, root: string): Promise<readonly string[]> {
  const all = [root];
  let level = [root];
  for (let depth = 1; depth <= LEVELS; depth++) {
    const next: string[] = [];
    for (const parent of level) {
      const created = Array.from({ length: FAN_OUT }, (_, i) =>
        createGroup({ url, token }, parent, `group ${depth} ${i}`),
      );
      next.push(...(await Promise.all(created)));
    }
    all.push(...next);
    level = next;
  }
  return all;
}

function createGroup(side: Pick<Side, "url" | "token">, parent: string, name: string): Promise<string> {
  const description = "A group that is read again and again.";
  return createResource(side, `/iam/v2beta1/groups/${parent}`, { name, description });
}

/**
 * Creates a resource over REST; resolves with its uid.
 *
 * @throws Error with the response when that is not 2xx
 */
export async function createResource(
  { url, token }: Pick<Side, "url" | "token">,
  path: string,
  resource: object,
): Promise<string> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(resource),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status}: ${text}`);
  return (JSON.parse(text) as { uid: string }).uid;
}
