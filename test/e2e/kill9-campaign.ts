// Kills writers with SIGKILL at random moments, again and again, and looks
// whether everything they had acknowledged is there afterwards.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { openInstallation } from "../../src/app/installation.js";
import { resolveSettings } from "../../src/config/config.js";
import { bootstrap } from "../../src/iam/operator/bootstrap.js";
import { issueToken } from "../../src/issuer/tokens.js";
import { randomIds } from "../../src/kernel/ids.js";
import { openSqlite } from "../../src/store/open-sqlite.js";
import { openDatabase } from "../../src/store/sqlite-driver.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { nameOf, versionOf } from "./kill9-names.js";

/** What a campaign does. */
export interface Campaign {
  /** Kills of a process that writes through the store. */
  readonly writerCycles: number;
  /** Kills of a whole server that is written to over HTTP. */
  readonly serverCycles: number;
  /** Writers acknowledge before the commit: a campaign that notices nothing then is worth nothing. */
  readonly control?: boolean;
  /** End with the first cycle that lost something. */
  readonly untilLost?: boolean;
}

/** What came of it. */
export interface CampaignResult {
  readonly cycles: number;
  /** How many writes were acknowledged. */
  readonly acknowledged: number;
  /** How many of them were not there after the kill. */
  readonly lost: number;
  /** Everything else that was wrong: damaged files, lists that disagree with rows. */
  readonly problems: readonly string[];
}

/** A data directory is written to for this many cycles: what survived one kill must survive the next. */
const CYCLES_PER_DIRECTORY = 10;
const HTTP_LANES = 8;
const BASE_URL = "http://arbor.test";

/** The last acknowledged version of each group, by uid. */
type Acknowledged = Map<string, number>;

/** Runs a campaign. */
export async function runCampaign(campaign: Campaign): Promise<CampaignResult> {
  const total = { cycles: 0, acknowledged: 0, lost: 0, problems: [] as string[] };
  const done = () => campaign.untilLost === true && total.lost > 0;

  async function cycles(count: number, killed: (directory: string, acknowledged: Acknowledged) => Promise<number>) {
    let [directory, acknowledged] = ["", new Map() as Acknowledged];
    for (let i = 0; i < count && !done(); i++) {
      if (i % CYCLES_PER_DIRECTORY === 0) [directory, acknowledged] = [tempDir(), new Map()];
      total.acknowledged += await killed(directory, acknowledged);
      total.cycles++;
      const { lost, problems } = await lookedAt(directory, acknowledged);
      total.lost += lost.length;
      total.problems.push(...problems);
      // Reported once, and not again with every cycle that follows.
      for (const uid of lost) acknowledged.delete(uid);
    }
  }

  const mode = campaign.control ? "control" : "honest";
  await Promise.all([
    cycles(campaign.writerCycles, (directory, acknowledged) => killWriter(directory, mode, acknowledged)),
    cycles(campaign.serverCycles, killServer),
  ]);
  return total;
}

async function killWriter(directory: string, mode: string, acknowledged: Acknowledged): Promise<number> {
  const { child, lines } = start("test/e2e/kill9-writer.ts", directory, mode);
  let count = 0;
  lines.on("line", (line) => {
    const [uid = "", version] = line.split(" ");
    acknowledged.set(uid, Number(version));
    if (count++ === 0) killSoon(child);
  });
  await once(lines, "close");
  return count;
}

async function killServer(directory: string, acknowledged: Acknowledged): Promise<number> {
  const { group, token } = await organisationIn(directory);
  const { child, lines } = start(
    "src/main.ts",
    "serve",
    "--data",
    directory,
    "--listen",
    "127.0.0.1:0",
    "--base-url",
    BASE_URL,
  );
  const closed = once(lines, "close");
  const url = await new Promise<string>((resolve, reject) => {
    lines.once("line", (line) => resolve(line.replace("arbor listening on ", "")));
    void closed.then(() => reject(new Error("the server did not start")));
  });
  const agent = new Agent({ keepAlive: true });
  let count = 0;
  const lane = async () => {
    for (;;) {
      const uid = await post(`${url}/iam/v2beta1/groups/${group}`, token, agent);
      if (uid === undefined) return;
      acknowledged.set(uid, 1);
      if (count++ === 0) killSoon(child);
    }
  };
  await Promise.all(Array.from({ length: HTTP_LANES }, lane));
  await closed;
  agent.destroy();
  return count;
}

async function organisationIn(directory: string): Promise<{ group: string; token: string }> {
  const settings = resolveSettings({ flags: { data: directory, baseUrl: BASE_URL }, env: {} });
  const { store, keys, close } = await openInstallation({ mode: "create", settings });
  const nowMs = Date.now();
  const made = await store.write((tx) => bootstrap(tx, { org: `v1 ${nowMs}` }, randomIds, nowMs));
  const token = await issueToken(
    { issuer: BASE_URL, audience: BASE_URL, identity: made.identity, lifeS: 3_600, nowMs },
    keys,
    randomIds,
  );
  await close();
  return { group: made.group, token };
}

// The uid of the group made, or undefined once the server is gone.
function post(url: string, token: string, agent: Agent): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const req = request(url, { method: "POST", agent, headers }, (res) => {
      let body = "";
      res.on("data", (chunk) => {
        body += chunk;
      });
      res.on("error", () => resolve(undefined));
      res.on("end", () => {
        if (res.statusCode === 200) resolve((JSON.parse(body) as { uid: string }).uid);
        else reject(new Error(`${res.statusCode}: ${body}`));
      });
    });
    req.on("error", () => resolve(undefined));
    req.end(JSON.stringify({ name: nameOf(1) }));
  });
}

function start(
  script: `${"src" | "test"}/${string}.ts`,
  ...args: readonly string[]
): { child: ChildProcess; lines: Interface } {
  const child = spawn(process.execPath, [...scriptArguments(script), ...args], {
    cwd: PROJECT,
    env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR },
    stdio: ["ignore", "pipe", "ignore"],
  });
  if (child.stdout === null) throw new TypeError("the process has no output");
  return { child, lines: createInterface({ input: child.stdout }) };
}

function killSoon(child: ChildProcess): void {
  setTimeout(() => child.kill("SIGKILL"), 20 + Math.random() * 130);
}

// Opened as the next server would: the lock must be free, and the log is replayed.
async function lookedAt(directory: string, acknowledged: Acknowledged) {
  const store = openSqlite({ directory, exclusive: true });
  await store.check();
  await store.close();
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  try {
    const rows = db.prepare("SELECT uid, name FROM groups").raw().all() as [uid: string, name: string][];
    const versions = new Map(rows.map(([uid, name]) => [uid, versionOf(name)]));
    const lost = [...acknowledged].filter(([uid, version]) => !((versions.get(uid) ?? 0) >= version));
    return { lost: lost.map(([uid]) => uid), problems: inconsistenciesIn(db) };
  } finally {
    db.close();
  }
}
