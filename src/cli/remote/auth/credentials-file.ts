// The file that logins are kept in. Whoever reads it can act as the person, so
// it is its owner's alone, and what is changed in it is changed under a lock.
import { mkdir, open } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { Code } from "@connectrpc/connect";
import { isBearerToken } from "../../../client/token-source.js";
import { jsonObject } from "./claims.js";
import { failure } from "./failure.js";
import { withLock } from "./lock.js";
import { replaceFile } from "./replace-file.js";

/** The form of the file; a newer one is not understood and so never overwritten. */
const VERSION = 1;

/** An identity that is assumed with the OIDC token in a file. */
export interface Workload {
  /** The uid of the identity. */
  readonly identity: string;
  /** The absolute path of the file. */
  readonly tokenFile: string;
}

/** A login at one service. */
export interface Login {
  /** The newest API token. */
  readonly token: string;
  /** Changes for a new API token and its own successor, once: used twice, it ends the login. */
  readonly refreshToken?: string;
  /** What the token can be had anew with instead. */
  readonly workload?: Workload;
}

/** A registry that docker asks us for credentials of. */
export interface Registry {
  /** The service whose tokens it takes. */
  readonly api: string;
  /** Who pulls; whoever is logged in at the service, if absent. */
  readonly workload?: Workload;
}

/** What the file holds. */
export interface Credentials {
  /** By address of the service, as `apiBase` spells it. */
  readonly logins: ReadonlyMap<string, Login>;
  /** By host, with the port where one is given. */
  readonly registries: ReadonlyMap<string, Registry>;
}

/** Where the file is: `ARBOR_CREDENTIALS`, or among the settings of the user (XDG Base Directory). */
export function credentialsFile(env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (env.ARBOR_CREDENTIALS) return resolve(env.ARBOR_CREDENTIALS);
  const settings = env.XDG_CONFIG_HOME ?? "";
  // The specification wants relative paths ignored.
  return join(isAbsolute(settings) ? settings : join(homedir(), ".config"), "arbor", "credentials.json");
}

/**
 * Reads the file; nothing is in one that does not exist.
 *
 * @throws ConnectError FAILED_PRECONDITION when others can read or write it, another user owns it, or it
 * holds something else
 */
export async function readCredentials(file: string): Promise<Credentials> {
  let handle: Awaited<ReturnType<typeof open>>;
  try {
    handle = await open(file, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { logins: new Map(), registries: new Map() };
    throw error;
  }
  try {
    // Of what is open, not of the name, which may stand for another file a moment later.
    const { mode, uid } = await handle.stat();
    // Without users in this sense there are no such permissions either.
    if (process.getuid !== undefined) {
      if (uid !== process.getuid()) throw unfit(file, "belongs to another user");
      if ((mode & 0o077) !== 0) throw unfit(file, `is open to other users; run: chmod 600 ${file}`);
    }
    return credentialsIn(await handle.readFile("utf8"), file);
  } finally {
    await handle.close();
  }
}

/**
 * Changes what the file holds, one process at a time.
 *
 * @param change gets what is in the file now and gives what shall be; the same, to leave it alone. What
 * it sends must have a deadline well below a minute.
 * @throws ConnectError as {@link readCredentials} does, or UNAVAILABLE when others take too long
 */
export async function changeCredentials(
  file: string,
  change: (now: Credentials) => Credentials | Promise<Credentials>,
): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await withLock(`${file}.lock`, async () => {
    const now = await readCredentials(file);
    const next = await change(now);
    if (next === now) return;
    const logins = Object.fromEntries(next.logins);
    const registries = Object.fromEntries(next.registries);
    await replaceFile(file, `${JSON.stringify({ version: VERSION, logins, registries }, null, 2)}\n`, 0o600);
  });
}

/** `now` with the login at `api` set, or without it. */
export function withLogin(now: Credentials, api: string, login: Login | undefined): Credentials {
  const logins = new Map(now.logins);
  if (login === undefined) logins.delete(api);
  else logins.set(api, login);
  return { ...now, logins };
}

function credentialsIn(text: string, file: string): Credentials {
  const { version, logins, registries } = jsonObject(text);
  if (typeof version === "number" && version > VERSION) throw unfit(file, "was written by a newer version of arbor");
  const read = <T>(members: unknown, parse: (value: unknown) => T | undefined) => {
    const found = new Map<string, T>();
    for (const [name, value] of Object.entries(objectIn(members) ?? {})) {
      const parsed = parse(value);
      if (parsed === undefined) throw broken(file);
      found.set(name, parsed);
    }
    return found;
  };
  if (version !== VERSION) throw broken(file);
  return { logins: read(logins, loginIn), registries: read(registries, registryIn) };
}

function loginIn(value: unknown): Login | undefined {
  const { token, refreshToken, workload: about } = objectIn(value) ?? {};
  const workload = workloadIn(about);
  if (!isBearerToken(token) || (about !== undefined && workload === undefined)) return undefined;
  if (refreshToken !== undefined && !isBearerToken(refreshToken)) return undefined;
  return { token, ...(refreshToken !== undefined && { refreshToken }), ...(workload && { workload }) };
}

function registryIn(value: unknown): Registry | undefined {
  const { api, workload: about } = objectIn(value) ?? {};
  const workload = workloadIn(about);
  if (typeof api !== "string" || (about !== undefined && workload === undefined)) return undefined;
  return { api, ...(workload && { workload }) };
}

function workloadIn(value: unknown): Workload | undefined {
  const { identity, tokenFile } = objectIn(value) ?? {};
  return typeof identity === "string" && typeof tokenFile === "string" ? { identity, tokenFile } : undefined;
}

function objectIn(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
}

function broken(file: string) {
  return unfit(file, "is damaged; remove it and log in again");
}

function unfit(file: string, why: string) {
  return failure(Code.FailedPrecondition, `the credentials file ${file} ${why}`);
}
