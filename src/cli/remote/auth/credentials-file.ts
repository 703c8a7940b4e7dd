// The file with the stored logins. Only its owner may read it, and processes change it under a lock.
import { open } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { isBearerToken } from "../../../client/token-source.js";
import { isDiskFault } from "../../../kernel/disk-errors.js";
import { Code, CommandError } from "../../errors.js";
import { parseJsonObject } from "../service.js";

/** The version of the file's format. A file of a newer version is never overwritten. */
const VERSION = 1;

/** An identity that is assumed with the OIDC token in a file. */
export interface Workload {
  /** The uid of the identity. */
  readonly identity: string;
  /** The absolute path of the file. */
  readonly tokenFile: string;
}

/** A login at one service. */
export interface StoredLogin {
  /** The newest API token. */
  readonly token: string;
  /** Exchanged once for a new API token and the next refresh token. A second use ends the login. */
  readonly refreshToken?: string;
  /** The newest API token for docker, which is limited to the registry. */
  readonly registryToken?: string;
  /** The identity that renews the token where there is no refresh token. */
  readonly workload?: Workload;
}

/** A registry for which docker runs the credential helper. */
export interface Registry {
  /** The service whose tokens the registry accepts. */
  readonly api: string;
  /** The identity that pulls; the login at the service, if absent. */
  readonly workload?: Workload;
}

/** The content of the file. */
export interface Credentials {
  /** By address of the service, as `normalizeApi` spells it. */
  readonly logins: ReadonlyMap<string, StoredLogin>;
  /** By host, with the port where one is given. */
  readonly registries: ReadonlyMap<string, Registry>;
}

/** Finds the path of the file: `ARBOR_CREDENTIALS`, or in the configuration of the user (XDG Base Directory). */
export function findCredentialsFile(env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (env.ARBOR_CREDENTIALS) return resolve(env.ARBOR_CREDENTIALS);
  const settings = env.XDG_CONFIG_HOME ?? "";
  // XDG: relative paths are invalid and must be ignored.
  return join(isAbsolute(settings) ? settings : join(homedir(), ".config"), "arbor", "credentials.json");
}

/**
 * Reads the file. A missing file is empty.
 *
 * @throws CommandError FAILED_PRECONDITION when others can read or write it, another user owns it, or its content is
 * invalid
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
    // Of the open file, because another file may have its name by now.
    const { mode, uid } = await handle.stat();
    // Systems without user ids have no such permissions either.
    if (process.getuid !== undefined) {
      if (uid !== process.getuid()) throw fileError(file, "belongs to another user");
      if ((mode & 0o077) !== 0) throw fileError(file, `is open to other users; run: chmod 600 ${file}`);
    }
    return parseCredentials(await handle.readFile("utf8"), file);
  } finally {
    await handle.close();
  }
}

/** The file cannot be written, and `change` of {@link changeCredentials} was not called. */
export class UnwritableCredentials extends CommandError {
  constructor(file: string, reason: string, cause: unknown) {
    const text = `the credentials file ${file} cannot be written: ${reason}; no login was changed or renewed`;
    super(isDiskFault(cause) ? Code.Unavailable : Code.FailedPrecondition, text, cause);
  }
}

/** How much larger the file may be after a change, in bytes. */
const GROWTH_BYTES = 64 * 1024;

/**
 * Makes sure that the file can be written.
 *
 * @throws UnwritableCredentials when it cannot; as {@link readCredentials} does
 */
export async function assertWritableCredentials(file: string): Promise<void> {
  await changeCredentials(file, (stored) => stored);
}

/**
 * Changes the content of the file, one process at a time.
 *
 * @param change returns the new content; with the same object the file is not written. Its requests must have deadlines
 * well below the age at which a lock is stale. It is called only if there is room for what it returns, because a refresh
 * token that is used and not stored ends its login.
 * @throws UnwritableCredentials when the file cannot be written; CommandError as {@link readCredentials} does, or UNAVAILABLE
 * when other processes take too long; Error when the new content could not be stored after all
 */
export async function changeCredentials(
  file: string,
  change: (stored: Credentials) => Credentials | Promise<Credentials>,
): Promise<void> {
  // Loaded here, because most commands only read.
  const { assertReplaceable, replaceFile, withLock } = await import("../../shared-file.js");
  const { createDirectories } = await import("../../../kernel/directories.js");
  let isChanging = false;
  try {
    createDirectories(dirname(file), 0o700);
    await withLock(`${file}.lock`, async () => {
      const stored = await readCredentials(file);
      await assertReplaceable(file, formatCredentials(stored).length + GROWTH_BYTES);
      isChanging = true;
      const next = await change(stored);
      if (next !== stored) await replaceFile(file, formatCredentials(next), 0o600);
    });
  } catch (error) {
    const { describeFileFault } = await import("../../../kernel/files.js");
    const reason = isChanging || error instanceof CommandError ? undefined : describeFileFault(error);
    throw reason === undefined ? error : new UnwritableCredentials(file, reason, error);
  }
}

function formatCredentials({ logins, registries }: Credentials): string {
  const members = { logins: Object.fromEntries(logins), registries: Object.fromEntries(registries) };
  return `${JSON.stringify({ version: VERSION, ...members }, null, 2)}\n`;
}

/** Returns `credentials` with another login at `api`, or without it. */
export function setLogin(credentials: Credentials, api: string, login: StoredLogin | undefined): Credentials {
  const logins = new Map(credentials.logins);
  if (login === undefined) logins.delete(api);
  else logins.set(api, login);
  return { ...credentials, logins };
}

function parseCredentials(text: string, file: string): Credentials {
  const { version, logins, registries } = parseJsonObject(text);
  if (typeof version === "number" && version > VERSION)
    throw fileError(file, "was written by a newer version of arbor");
  const read = <T>(members: unknown, parse: (value: unknown) => T | undefined) => {
    const found = new Map<string, T>();
    for (const [name, value] of Object.entries(asObject(members) ?? {})) {
      const parsed = parse(value);
      if (parsed === undefined) throw damageError(file);
      found.set(name, parsed);
    }
    return found;
  };
  if (version !== VERSION) throw damageError(file);
  return { logins: read(logins, parseLogin), registries: read(registries, parseRegistry) };
}

function parseLogin(value: unknown): StoredLogin | undefined {
  const { token, refreshToken, registryToken, workload: about } = asObject(value) ?? {};
  const workload = parseWorkload(about);
  if (!isBearerToken(token) || (about !== undefined && workload === undefined)) return undefined;
  if (refreshToken !== undefined && !isBearerToken(refreshToken)) return undefined;
  if (registryToken !== undefined && !isBearerToken(registryToken)) return undefined;
  return {
    token,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(registryToken !== undefined && { registryToken }),
    ...(workload && { workload }),
  };
}

function parseRegistry(value: unknown): Registry | undefined {
  const { api, workload: about } = asObject(value) ?? {};
  const workload = parseWorkload(about);
  if (typeof api !== "string" || (about !== undefined && workload === undefined)) return undefined;
  return { api, ...(workload && { workload }) };
}

function parseWorkload(value: unknown): Workload | undefined {
  const { identity, tokenFile } = asObject(value) ?? {};
  return typeof identity === "string" && typeof tokenFile === "string" ? { identity, tokenFile } : undefined;
}

function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
}

function damageError(file: string) {
  return fileError(file, "is damaged; remove it and log in again");
}

function fileError(file: string, reason: string) {
  return new CommandError(Code.FailedPrecondition, `the credentials file ${file} ${reason}`);
}
