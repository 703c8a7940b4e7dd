// `arbor complete-names`, which the scripts of `arbor completion` run: the names that may follow what somebody has typed. It
// asks over JSON, because the RPC libraries take longer to load than a shell may wait.
import { Code, CommandError } from "../../errors.js";
import { escapeControls, withStdout } from "../../output/terminal.js";
import { findCredentialsFile, readCredentials } from "../auth/credentials-file.js";
import { parseClaims } from "../auth/token-claims.js";
import { type ApiFlags, normalizeApi, resolveApi } from "../service.js";

/** How long the service may take, in milliseconds. The program itself takes about a hundred to start. */
const DEADLINE_MS = 200;

/** The largest page of a list. What is beyond it is not completed. */
const PAGE_SIZE = "200";

/** The lists of kinds that lie below groups. Names of groups are looked up for all of them, as the beginning of a path. */
const lists = {
  group: "/iam/v2beta1/groups",
  role: "/iam/v2beta1/roles",
  identity: "/iam/v2beta1/identities",
  "identity provider": "/iam/v2beta1/identityProviders",
  repo: "/registry/v2beta1/repos",
} as const;

/** A kind whose names are completed. */
export type CompletedKind = keyof typeof lists;

export const completedKinds = Object.keys(lists) as readonly CompletedKind[];

interface Row {
  readonly uid?: string;
  readonly name?: string;
}

/** Reads the rows of one page of a list; fewer, or none, where the caller may not list. */
type ReadRows = (path: string, query: Readonly<Record<string, string>>) => Promise<readonly unknown[]>;

/**
 * Prints the names of a kind that begin with a text, a line each; groups that are only the beginning of a path end with a
 * slash. It never logs in, renews no login, and prints nothing rather than an error or late.
 */
export async function completeNames(kind: CompletedKind, text: string, flags: ApiFlags): Promise<void> {
  const names = await findNames(kind, text, flags, AbortSignal.timeout(DEADLINE_MS)).catch(() => []);
  await withStdout(({ write }) => write(names.map((name) => `${name}\n`).join("")));
}

/**
 * Finds the names of a kind that begin with a text.
 *
 * @throws CommandError without a token that is valid now; whatever `fetch` throws
 */
export async function findNames(
  kind: CompletedKind,
  text: string,
  flags: ApiFlags,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const api = resolveApi(flags);
  const token = await findValidToken(api);
  const read: ReadRows = async (path, query) => {
    const url = `${api}${path}?${new URLSearchParams({ pageSize: PAGE_SIZE, ...query })}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, redirect: "manual", signal });
    const body = (await response.json()) as object;
    return response.ok ? (Object.values(body).find(Array.isArray) ?? []) : [];
  };
  const at = text.lastIndexOf("/");
  const names = at < 0 ? await findFirst(read, kind) : await findBelow(read, kind, text.slice(0, at));
  // A shell takes each line as a name, and shows it.
  return [...new Set(names)].filter((name) => name.startsWith(text) && escapeControls(name) === name).sort();
}

/** A token that is valid now; a login would be renewed by the next command that needs it. */
async function findValidToken(api: string): Promise<string> {
  const stored = async () =>
    (await readCredentials(findCredentialsFile())).logins.get(normalizeApi(api, "--api"))?.token;
  const token = process.env.ARBOR_TOKEN || (await stored());
  if (token === undefined || (parseClaims(token).expiresMs ?? Number.POSITIVE_INFINITY) <= Date.now())
    throw new CommandError(Code.Unauthenticated, "there is no token");
  return token;
}

/** The groups to which the caller is bound and their organisations, and what is named without a path: roles and addresses. */
async function findFirst(read: ReadRows, kind: CompletedKind): Promise<string[]> {
  const groups = (await readReach(read)).map(({ name = "" }) => (kind === "group" ? name : `${name}/`));
  if (kind === "role") return [...groups, ...namesOf(await read(lists.role, {}))];
  if (kind !== "identity") return groups;
  const bindings = (await read("/iam/v2beta1/roleBindings", {})) as readonly { identity?: { email?: string } }[];
  return [...groups, ...bindings.flatMap(({ identity }) => identity?.email || [])];
}

async function findBelow(read: ReadRows, kind: CompletedKind, path: string): Promise<string[]> {
  const group = await findGroup(read, path.split("/"));
  if (group === undefined) return [];
  const below = { "uidp.childrenOf": group };
  const [groups, rows] = await Promise.all([
    read(lists.group, below),
    kind === "group" ? [] : read(lists[kind], below),
  ]);
  const end = kind === "group" ? "" : "/";
  return [...namesOf(groups).map((name) => name + end), ...namesOf(rows)].map((name) => `${path}/${name}`);
}

async function findGroup(read: ReadRows, [first, ...rest]: readonly string[]): Promise<string | undefined> {
  let uid = (await readReach(read)).find(({ name }) => name === first)?.uid;
  for (const name of rest) {
    if (uid === undefined) return undefined;
    const rows = (await read(lists.group, { name, "uidp.childrenOf": uid })) as readonly Row[];
    uid = rows.find((row) => row.name === name)?.uid;
  }
  return uid;
}

async function readReach(read: ReadRows): Promise<readonly Row[]> {
  const bindings = (await read("/bindings/v1/bindings", {})) as readonly { organization?: Row; group?: Row }[];
  return bindings.flatMap(({ organization, group }) => [organization ?? {}, group ?? {}]).filter(({ uid }) => uid);
}

function namesOf(rows: readonly unknown[]): string[] {
  return (rows as readonly Row[]).flatMap(({ name }) => name || []);
}
