// Kills nodes that deliver events, again and again, while changes are made and the sink refuses some of them, and compares
// what arrived with what the audit log has.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { restAs } from "../contract/rest.js";
import { newDatabase, withClient } from "../pg/databases.js";
import { spawn } from "../support/child-process.js";
import { newDataDir } from "../support/data-dir.js";
import { freePort } from "../support/free-port.js";
import { PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { startReceiver } from "./receiver.js";

export interface EventCampaign {
  readonly kills: number;
  readonly changes: number;
  /** The share of requests that the sink refuses. */
  readonly failing: number;
  /** Two nodes on PostgreSQL, of which the one that delivers is killed; rows are committed late. */
  readonly isPg?: boolean;
  /** Nodes note that events were accepted before they send them. */
  readonly control?: boolean;
}

export interface EventCampaignResult {
  readonly kills: number;
  /** Changes that were answered, and those that the log has in the end. */
  readonly answered: number;
  readonly committed: number;
  readonly delivered: number;
  /** Requests that the sink has accepted more than once. */
  readonly duplicates: number;
  readonly lost: number;
  readonly problems: readonly string[];
  /** From the kill of the leader to the next request, in milliseconds, the shortest first; two nodes only. */
  readonly takeoverMs: readonly number[];
}

const VERSIONS = 3;
const WORKERS = 6;
/** How long after the last request of a node nothing more is expected, in milliseconds. */
const END_MS = 120_000;

interface Node {
  readonly child: ChildProcess;
  readonly url: string;
  readonly started: Readonly<Record<string, string>>;
}

/** One change, by the resource and what its body says of it. */
type Change = string;

/** Runs a campaign. */
export async function runEventCampaign(campaign: EventCampaign): Promise<EventCampaignResult> {
  const { kills, changes, failing, isPg = false, control = false } = campaign;
  const receiver = await startReceiver(() => (Math.random() < failing ? 500 : 200));
  const database = await openDatabaseFor(isPg);
  const ports = [await freePort(), ...(isPg ? [await freePort()] : [])];
  const mode = control ? "control" : "honest";
  const start = (i: number, first = "") => startNode([...database.arguments(ports[i] ?? 0, `${mode}${first}`)]);
  const nodes: Node[] = [await start(0, " first")];
  if (isPg) nodes.push(await start(1));
  const { group = "", token = "" } = nodes[0]?.started ?? {};
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const subscribed = await restAs(urls[0] ?? "", token, "")("POST", `/events/v2/subscriptions/${group}`, {
    sink: receiver.url,
  });
  if (subscribed.status !== 200) throw new Error(subscribed.text);

  const answered = new Set<Change>();
  let [made, killed, isOver] = [0, 0, false];
  const takeoverMs: number[] = [];
  async function work(worker: number): Promise<void> {
    for (let i = 0; made < changes; i++) {
      // Spread over the whole campaign: each kill hits some, and a sink that refuses some keeps up.
      while (!isOver && made / changes > (killed + 1) / kills) await sleep(20);
      const rest = restAs(urls[(worker + i) % urls.length] ?? "", token, "");
      const name = `w${worker}-${i}`;
      const created = await rest("POST", `/iam/v2/groups/${group}`, { name: `${name}-0` }).catch(() => undefined);
      if (created?.status !== 200) {
        await sleep(50);
        continue;
      }
      made++;
      const uid = String(created.json?.uid);
      answered.add(`${uid} ${name}-0`);
      for (let version = 1; version <= VERSIONS; version++) {
        const body = { name: `${name}-${version}` };
        const updated = await rest("PATCH", `/iam/v2/groups/${uid}`, body).catch(() => undefined);
        if (updated?.status === 200) {
          answered.add(`${uid} ${name}-${version}`);
          made++;
        } else await sleep(50);
      }
    }
  }

  async function killAll(): Promise<void> {
    for (; killed < kills; killed++) {
      await sleep(200 + Math.random() * 6_000);
      const i = isPg ? await database.findLeader(nodes) : 0;
      const node = nodes[i];
      if (node === undefined) throw new Error("nobody delivers");
      const killedMs = Date.now();
      const seen = receiver.received.length;
      node.child.kill("SIGKILL");
      await once(node.child, "close");
      if (isPg) {
        const endMs = Date.now() + 15_000;
        // What was on its way when the node was killed does not count.
        const findNext = () => receiver.received.slice(seen).find(({ atMs }) => atMs > killedMs + 50);
        while (findNext() === undefined && Date.now() < endMs) await sleep(10);
        takeoverMs.push((findNext()?.atMs ?? Number.POSITIVE_INFINITY) - killedMs);
      }
      nodes[i] = await start(i);
    }
    isOver = true;
  }

  try {
    await Promise.all([killAll(), ...Array.from({ length: WORKERS }, (_, worker) => work(worker))]);
    const accepted = () => receiver.received.filter(({ status }) => status === 200);
    const committed = await database.readChanges(group);
    const find = () => new Set(accepted().map(({ event }) => `${event.subject} ${event.data?.body.name}`));
    const isDone = () => {
      const found = find();
      return [...committed.keys()].every((change) => found.has(change));
    };
    // Until nothing more comes: what a sink refuses again and again waits ever longer.
    let [seen, seenMs] = [0, Date.now()];
    while (!isDone() && Date.now() - seenMs < (control ? 20_000 : END_MS)) {
      await sleep(250);
      if (receiver.received.length > seen) [seen, seenMs] = [receiver.received.length, Date.now()];
    }
    const found = find();
    const lost = [...committed.keys()].filter((change) => !found.has(change));
    const inGroups = accepted().filter(({ event }) => event.type.includes(".group."));
    return {
      ...{ kills, answered: answered.size, committed: committed.size, delivered: found.size, lost: lost.length },
      duplicates: inGroups.length - new Set(inGroups.map(({ event }) => event.id)).size,
      problems: findProblems(inGroups, committed, answered),
      takeoverMs: takeoverMs.sort((a, b) => a - b),
    };
  } finally {
    for (const { child } of nodes) child.kill("SIGKILL");
    receiver.close();
  }
}

type Accepted = Awaited<ReturnType<typeof startReceiver>>["received"];

function findProblems(accepted: Accepted, committed: ReadonlyMap<Change, number>, answered: ReadonlySet<Change>) {
  const problems: string[] = [];
  const ids = new Map<Change, string>();
  const last = new Map<string, number>();
  for (const { event } of accepted) {
    const name = String(event.data?.body.name);
    const change = `${event.subject} ${name}`;
    if (!committed.has(change)) problems.push(`${change} was delivered and is not in the log`);
    const known = ids.get(change);
    if (known !== undefined && known !== event.id) problems.push(`${change} has two ids`);
    if (known === undefined) {
      // The order of what is delivered for the first time.
      const version = Number(name.slice(name.lastIndexOf("-") + 1));
      if (version < (last.get(event.subject ?? "") ?? -1)) problems.push(`${change} came after a later one`);
      last.set(event.subject ?? "", version);
    }
    ids.set(change, event.id);
  }
  if (new Set(ids.values()).size !== ids.size) problems.push("two changes have one id");
  for (const change of answered)
    if (!committed.has(change)) problems.push(`${change} was answered and is not in the log`);
  return problems;
}

async function startNode(parameters: readonly string[]): Promise<Node> {
  const child = spawn(process.execPath, [...scriptArguments("test/events/kill-node.ts"), ...parameters], {
    cwd: PROJECT,
    env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, NODE_NO_WARNINGS: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (child.stdout === null) throw new TypeError("the process has no output");
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    once(child, "close").then(() => {
      throw new Error("a node did not start");
    }),
  ])) as [string];
  const started = JSON.parse(line) as Record<string, string>;
  return { child, url: started.url ?? "", started };
}

const CHANGES =
  "SELECT subject_uid, body FROM audit WHERE root_uid = $1 AND type LIKE 'dev.chainguard.api.iam.group.%'";

function toChanges(rows: readonly { subject_uid: string; body: string }[]): Map<Change, number> {
  const changes = new Map<Change, number>();
  for (const [i, { subject_uid: uid, body }] of rows.entries()) {
    changes.set(`${uid} ${(JSON.parse(body) as { after: { name: string } }).after.name}`, i);
  }
  return changes;
}

async function openDatabaseFor(isPg: boolean) {
  if (!isPg) {
    const data = newDataDir();
    return {
      arguments: (port: number, mode: string) => [data, String(port), mode],
      findLeader: async () => 0,
      async readChanges(root: string) {
        const db = openDatabase(join(data, "arbor.db"), { readonly: true });
        try {
          return toChanges(db.prepare(CHANGES.replace("$1", "?")).all(root) as { subject_uid: string; body: string }[]);
        } finally {
          db.close();
        }
      },
    };
  }
  const url = await newDatabase();
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  // One row in ten keeps its transaction open after it has its id.
  await withClient(url, async (client) => {
    await client.query(`CREATE FUNCTION commit_late() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF random() < 0.1 THEN PERFORM pg_sleep(random() * 1.5); END IF; RETURN NULL; END $$`);
    await client.query("CREATE TRIGGER commit_late AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION commit_late()");
  });
  return {
    arguments: (port: number, mode: string) => [newDataDir(), String(port), mode, url, masterKeyFile],
    findLeader: (nodes: readonly Node[]) =>
      withClient(url, async (client) => {
        for (const endMs = Date.now() + 15_000; Date.now() < endMs; await sleep(50)) {
          const { rows } = await client.query("SELECT holder FROM jobs WHERE name = 'event-delivery'");
          const leader = nodes.findIndex(({ child }) => String(rows[0]?.holder).includes(`-${child.pid}-`));
          if (leader >= 0) return leader;
        }
        return -1;
      }),
    readChanges: (root: string) =>
      withClient(url, async (client) => toChanges((await client.query(CHANGES, [root])).rows)),
  };
}
