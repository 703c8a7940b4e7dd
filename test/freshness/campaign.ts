// Changes at one of several servers with one database, and reads at another as soon as the change is acknowledged. What is
// read was read there before, so that a cache would have it.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { openInstallation } from "../../src/app/installation.js";
import { resolveSettings } from "../../src/config/config.js";
import { resolveOrigin } from "../../src/config/origin.js";
import { bootstrap } from "../../src/iam/operator/bootstrap.js";
import { revokeTokens } from "../../src/iam/operator/operate.js";
import { linkPerson } from "../../src/iam/people/directory-person.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { issueToken, readIssueDate } from "../../src/issuer/tokens.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { scimUserKind } from "../../src/store/iam/scim-users.js";
import { type RestResponse, restAs } from "../contract/rest.js";
import { newDatabase } from "../pg/databases.js";
import { spawn } from "../support/child-process.js";
import { runCommand } from "../support/command.js";
import { newDataDir } from "../support/data-dir.js";
import { directoryContext } from "../support/directory-context.js";
import { PROJECT, scriptArguments } from "../support/project.js";
import { identityRow } from "../support/rows.js";
import { memoryDir, tempDir } from "../support/temp-dir.js";

export interface FreshnessCampaign {
  readonly rounds: number;
  readonly isPg?: boolean;
  /** Servers keep what they have read for a second: a campaign that notices nothing then is worth nothing. */
  readonly control?: boolean;
}

const changes = [
  "group created",
  "group renamed",
  "group deleted",
  "role bound",
  "role binding removed",
  "role binding ended",
  "tokens revoked",
  "tokens revoked by a command",
  "identity deleted",
  "person deactivated by a directory",
  "person deleted by a directory",
  "person added to a group of a directory",
  "person removed from a group of a directory",
  "group of a directory deleted",
  "signing key revoked by a command",
  "key of page tokens rotated by a command",
] as const;
type Change = (typeof changes)[number];

const SERVERS = 4;
/** How many rounds run at once: while one waits for a server, the others go on. */
const LANES = 8;
const RENAMES = 4;
const MAX_TRIES = 10;
/** Every so many rounds the signing key is revoked. All lanes wait then, because their tokens end. */
const ROUNDS_PER_KEY = 500;
/** Every so many cycles of a lane, a command takes the place of a change through the store. */
const CYCLES_PER_COMMAND = 25;
const BASE_URL = "http://arbor.example";
const viewer = builtinRoleUid("viewer");

interface Server {
  readonly url: string;
  readonly child: ChildProcess;
}

/** Runs a campaign. */
export async function runFreshness({ rounds, isPg = false, control = false }: FreshnessCampaign) {
  const flags = isPg ? await createPgFlags() : { data: newDataDir() };
  const settings = resolveSettings({ flags: { ...flags, baseUrl: BASE_URL, tokenAlgorithm: "ES256" }, env: {} });
  // Also what a command on the host is: another process that changes the database.
  const host = await openInstallation({ settings, mode: "create" });
  const { store, keys, clock } = host;
  const { issuer } = resolveOrigin(settings, { ...settings.listen, port: 1 });
  const { group: root, identity: owner } = await store.write((tx) =>
    bootstrap(tx, { org: "fresh.example" }, randomIds, clock()),
  );
  const servers: Server[] = [];
  while (servers.length < SERVERS) {
    servers.push(await startServer(control ? "control" : "honest", { ...flags, baseUrl: BASE_URL }));
  }

  const counts = Object.fromEntries(changes.map((change) => [change, { rounds: 0, stale: 0 }])) as Record<
    Change,
    { rounds: number; stale: number }
  >;
  const problems: string[] = [];
  let total = 0;
  let turns = 0;
  let ownerToken = await signToken(owner);

  async function signToken(identity: string): Promise<string> {
    const issueDate = await store.read((tx) => readIssueDate(tx, identity, clock()));
    return issueToken({ issuer, audience: BASE_URL, identity, lifeS: 3600, ...issueDate }, keys, randomIds);
  }

  /** A provider whose SCIM is on. */
  async function createDirectory(): Promise<{ readonly provider: string; readonly token: string }> {
    const second = identityRow(randomIds.newUid());
    await store.write((tx) => tx.table(identityKind).insert(second));
    const rest = restAs(urlOf(0), ownerToken);
    const oidc = { issuer: "https://login.example", clientId: "id", pkceEnabled: true };
    const ask = async (path: string, body: object) => (await must(() => rest("POST", path, body))).json ?? {};
    await ask(`/roleBindings/${root}`, { identityUid: second.uid, roleUid: builtinRoleUid("owner") });
    const { uid: provider } = await ask(`/identityProviders/${root}`, { name: "directory", defaultRole: viewer, oidc });
    const { token, etag } = await ask(`/identityProviders/${provider}:generateScimToken`, {});
    await ask(`/identityProviders/${provider}:setScimEnabled`, { enabled: true, etag });
    return { provider: String(provider), token: String(token) };
  }

  /** Sends a request of the directory, again while it conflicts with others. */
  async function sendOfDirectory(url: string, method: string, path: string, body?: object): Promise<string> {
    for (let tries = 1; ; tries++) {
      const response = await fetch(`${url}/scim/v2/${directory.provider}${path}`, {
        method,
        headers: { authorization: `Bearer ${directory.token}`, "content-type": "application/scim+json" },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (response.ok) return text;
      if (![429, 503].includes(response.status) || tries === MAX_TRIES)
        throw new Error(`a request of the directory failed: ${response.status} ${text}`);
    }
  }

  /** A person of the directory who has signed in. */
  async function createPerson(name: string): Promise<{ readonly id: string; readonly token: string }> {
    const { id } = JSON.parse(
      await sendOfDirectory(urlOf(0), "POST", "/Users", { userName: name, externalId: name }),
    ) as {
      id: string;
    };
    const identity = identityRow(randomIds.newUid(), { providerUid: directory.provider });
    await store.write(async (tx) => {
      await tx.table(identityKind).insert(identity);
      const row = await tx.table(scimUserKind).find(`${directory.provider}/${id}`);
      if (row !== undefined) await linkPerson(tx, row, identity.uid, directoryContext());
    });
    return { id, token: await signToken(identity.uid) };
  }

  /** The next two servers, so that each of them reads what each other one has written. */
  function takeServers(): [writing: string, reading: string] {
    const turn = turns++;
    const writing = turn % SERVERS;
    const reading = (writing + 1 + (Math.floor(turn / SERVERS) % (SERVERS - 1))) % SERVERS;
    return [urlOf(writing), urlOf(reading)];
  }
  const urlOf = (index: number) => servers[index]?.url ?? "";
  const directory = await createDirectory();

  function note(change: Change, isFresh: boolean): void {
    total++;
    counts[change].rounds++;
    if (!isFresh) counts[change].stale++;
  }

  /** Makes a change, again while it conflicts with others, as every client of a database of many writers must. */
  async function must(change: () => Promise<RestResponse>): Promise<RestResponse> {
    for (let tries = 1; ; tries++) {
      const found = await change();
      if (found.status === 200) return found;
      if (found.json?.code !== Code.Aborted || tries === MAX_TRIES)
        throw new Error(`a change failed: ${found.status} ${found.text}`);
    }
  }

  /**
   * One round: reads at one server, changes at another, and reads again.
   *
   * @param change changes something through the server at `url`
   * @param read reads through another one
   * @param isFresh whether what was read is what was changed
   */
  async function round<T>(
    kind: Change,
    change: (url: string) => Promise<T>,
    read: (url: string) => Promise<RestResponse>,
    isFresh: (response: RestResponse, changed: T) => boolean,
  ): Promise<T> {
    const [writing, reading] = takeServers();
    await read(reading);
    const changed = await change(writing);
    const response = await read(reading);
    // A server that fails says nothing about freshness.
    if (response.status >= 500) problems.push(`${kind}: ${response.status} ${response.text}`);
    note(kind, isFresh(response, changed));
    return changed;
  }

  async function runCycle(lane: number, cycle: number): Promise<void> {
    const as = (token: string) => (url: string) => restAs(url, token);
    const byOwner = as(ownerToken);
    const name = `lane ${lane} cycle ${cycle}`;
    const listed = (url: string) =>
      byOwner(url)("GET", `/groups?uidp.childrenOf=${root}&name=${encodeURIComponent(name)}`);
    const group = await round(
      "group created",
      async (url) => String((await must(() => byOwner(url)("POST", `/groups/${root}`, { name }))).json?.uid),
      listed,
      ({ json }, uid) => (json?.groups as { uid: string }[] | undefined)?.[0]?.uid === uid,
    );
    const readGroup = (url: string) => byOwner(url)("GET", `/groups/${group}`);
    for (let i = 0; i < RENAMES; i++) {
      const next = `${name} name ${i}`;
      const rename = (url: string) => must(() => byOwner(url)("PATCH", `/groups/${group}`, { name: next }));
      await round("group renamed", rename, readGroup, ({ json }) => json?.name === next);
    }

    const row = identityRow(randomIds.newUid());
    await store.write((tx) => tx.table(identityKind).insert(row));
    const old = await signToken(row.uid);
    const readAs = (token: string) => (url: string) => as(token)(url)("GET", `/groups/${group}`);
    const binding = await round(
      "role bound",
      async (url) => {
        const body = { identityUid: row.uid, roleUid: viewer };
        return String((await must(() => byOwner(url)("POST", `/roleBindings/${group}`, body))).json?.uid);
      },
      readAs(old),
      ({ status }) => status === 200,
    );
    await round(
      "role binding removed",
      (url) => must(() => byOwner(url)("DELETE", `/roleBindings/${binding}`)),
      readAs(old),
      ({ status }) => status === 403,
    );
    const again = { identityUid: row.uid, roleUid: viewer };
    const ending = String((await must(() => byOwner(urlOf(0))("POST", `/roleBindings/${group}`, again))).json?.uid);
    await round(
      "role binding ended",
      (url) => endBinding(url, ending),
      readAs(old),
      ({ status }) => status === 403,
    );
    const isUnknown = ({ status }: RestResponse) => status === 401;
    if ((cycle + lane) % CYCLES_PER_COMMAND === 0) {
      await round(
        "tokens revoked by a command",
        () => command("identities", "revoke", row.uid, "--yes"),
        readAs(old),
        isUnknown,
      );
    } else {
      const revoke = () => store.write((tx) => revokeTokens(tx, row.uid, { ids: randomIds, nowMs: clock() }));
      await round("tokens revoked", revoke, readAs(old), isUnknown);
    }

    const person = identityRow(randomIds.newUid(group));
    await store.write((tx) => tx.table(identityKind).insert(person));
    await round(
      "identity deleted",
      (url) => must(() => byOwner(url)("DELETE", `/identities/${person.uid}`)),
      readAs(await signToken(person.uid)),
      isUnknown,
    );
    const isSignedIn = (token: string) => (url: string) => restAs(url, token, "")("GET", "/auth/v1/ok");
    const deactivated = await createPerson(`${name} a`);
    const off = { Operations: [{ op: "replace", path: "active", value: false }] };
    await round(
      "person deactivated by a directory",
      (url) => sendOfDirectory(url, "PATCH", `/Users/${deactivated.id}`, off),
      isSignedIn(deactivated.token),
      isUnknown,
    );
    const deleted = await createPerson(`${name} b`);
    await round(
      "person deleted by a directory",
      (url) => sendOfDirectory(url, "DELETE", `/Users/${deleted.id}`),
      isSignedIn(deleted.token),
      isUnknown,
    );
    // Mapped to the role viewer at the group.
    const member = await createPerson(`${name} c`);
    const made = JSON.parse(
      await sendOfDirectory(urlOf(0), "POST", "/Groups", { displayName: name, externalId: name }),
    );
    const mapping = { externalGroupId: name, roleUid: viewer, scope: group };
    const mapped = await must(() =>
      byOwner(urlOf(0))("POST", `/externalGroupRoleMappings/${directory.provider}`, mapping),
    );
    const members = (op: "add" | "remove") => ({
      Operations: [{ op, path: "members", value: [{ value: member.id }] }],
    });
    const changeMembers = (op: "add" | "remove") => (url: string) =>
      sendOfDirectory(url, "PATCH", `/Groups/${made.id}`, members(op));
    const isDenied = ({ status }: RestResponse) => status === 403;
    await round("person added to a group of a directory", changeMembers("add"), readAs(member.token), (response) => {
      return response.status === 200;
    });
    await round("person removed from a group of a directory", changeMembers("remove"), readAs(member.token), isDenied);
    await changeMembers("add")(urlOf(0));
    await round(
      "group of a directory deleted",
      (url) => sendOfDirectory(url, "DELETE", `/Groups/${made.id}`),
      readAs(member.token),
      isDenied,
    );
    await must(() => byOwner(urlOf(0))("DELETE", `/externalGroupRoleMappings/${mapped.json?.uid}`));
    await round(
      "group deleted",
      (url) => must(() => byOwner(url)("DELETE", `/groups/${group}`)),
      readGroup,
      ({ status }) => status === 404,
    );
  }

  // Resolves at the end, which must be in the future for the server: a slow one gets more time.
  async function endBinding(url: string, uid: string): Promise<void> {
    const rest = restAs(url, ownerToken, "/bindings/v1");
    for (let tries = 1; ; tries++) {
      const endMs = clock() + tries * 200;
      const { status, text } = await rest("POST", `/temporaryBindings/${uid}:setEnd`, {
        endTime: new Date(endMs).toISOString(),
      });
      if (status !== 200 && tries === MAX_TRIES) throw new Error(`a binding could not end: ${status} ${text}`);
      if (status !== 200) continue;
      while (clock() < endMs) await sleep(endMs - clock());
      return;
    }
  }

  async function command(...args: readonly string[]): Promise<string> {
    const place = isPg
      ? ["--database-url", String(settings.databaseUrl), "--master-key-file", String(settings.masterKeyFile)]
      : ["--data", settings.data];
    const { code, stdout, stderr } = await runCommand(["admin", ...args, ...place]);
    if (code !== 0) throw new Error(stderr);
    return stdout;
  }

  /** Changes keys by commands, and calls every server after each. */
  async function changeKeys(): Promise<void> {
    const [before, { kid }] = [ownerToken, keys.getSigningKey()];
    const path = `/groups/${root}`;
    for (const { url } of servers) await restAs(url, before)("GET", path);
    await command("keys", "revoke", kid, "--yes");
    await keys.refresh();
    ownerToken = await signToken(owner);
    for (const { url } of servers) {
      const old = await restAs(url, before)("GET", path);
      const fresh = await restAs(url, ownerToken)("GET", path);
      const jwks = (await restAs(url, undefined, "")("GET", "/.well-known/jwks.json")).text;
      const isPublished = jwks.includes(keys.getSigningKey().kid) && !jwks.includes(kid);
      note("signing key revoked by a command", old.status === 401 && fresh.status === 200 && isPublished);
    }
    await command("keys", "rotate", "--purpose", "page-token");
    const roles = "/roles?pageSize=1";
    for (const [index, { url }] of servers.entries()) {
      const { json } = await must(() => restAs(urlOf((index + 1) % SERVERS), ownerToken)("GET", roles));
      const next = await restAs(url, ownerToken)("GET", `${roles}&pageToken=${json?.nextPageToken}`);
      note("key of page tokens rotated by a command", next.status === 200);
    }
  }

  let nextKeys = Math.min(ROUNDS_PER_KEY, Math.ceil(rounds / 2));
  let waiting = 0;
  let goOn = createSignal();
  async function waitForKeys(): Promise<void> {
    // After the last change of keys lanes end one by one, so none may wait for all.
    if (total < nextKeys || nextKeys > rounds) return;
    if (++waiting < LANES) return goOn.sent;
    await changeKeys();
    nextKeys = total + ROUNDS_PER_KEY;
    waiting = 0;
    const { send } = goOn;
    goOn = createSignal();
    send();
  }
  async function runLane(lane: number): Promise<void> {
    for (let cycle = 0; ; cycle++) {
      await waitForKeys();
      if (total >= rounds) return;
      await runCycle(lane, cycle);
    }
  }

  try {
    await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(lane)));
    return { counts, problems };
  } finally {
    for (const { child } of servers) child.kill("SIGKILL");
    await host.close();
  }
}

function createSignal(): { readonly sent: Promise<void>; readonly send: () => void } {
  let send = () => {};
  const sent = new Promise<void>((resolve) => {
    send = resolve;
  });
  return { sent, send };
}

async function createPgFlags(): Promise<Readonly<Record<string, string>>> {
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  return { databaseUrl: await newDatabase(), masterKeyFile, data: memoryDir() };
}

async function startServer(mode: string, flags: Readonly<Record<string, string>>): Promise<Server> {
  const args = [...scriptArguments("test/freshness/node.ts"), mode, JSON.stringify(flags)];
  const child = spawn(process.execPath, args, { cwd: PROJECT, stdio: ["ignore", "pipe", "inherit"] });
  if (child.stdout === null) throw new TypeError("the process has no output");
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`a server ended with ${code} before it was ready`);
  });
  const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended])) as [string];
  ended.catch(() => {});
  return { ...(JSON.parse(line) as { url: string }), child };
}
