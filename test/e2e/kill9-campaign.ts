// Kills writers with SIGKILL at random moments, again and again, and looks
// whether everything they had acknowledged is there afterwards.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { spawn } from "../support/child-process.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { versionOf } from "./kill9-names.js";
import { ServedDirectory } from "./kill9-server.js";

/** What a campaign does. */
export interface Campaign {
  /** Kills of a process that writes through the store. */
  readonly writerCycles: number;
  /** Kills of a whole server that is written to over REST and gRPC. */
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
  /** How long servers took to listen, in milliseconds, the shortest first. */
  readonly startMs: readonly number[];
  /** Everything else that was wrong: damaged files, lists that disagree with rows. */
  readonly problems: readonly string[];
}

/** A data directory is written to for this many cycles: what survived one kill must survive the next. */
const CYCLES_PER_DIRECTORY = 10;

/** The last acknowledged version of each group, by uid. */
type Acknowledged = Map<string, number>;

/** Runs a campaign. */
export async function runCampaign(campaign: Campaign): Promise<CampaignResult> {
  const total = { cycles: 0, acknowledged: 0, lost: 0, problems: [] as string[], startMs: [] as number[] };
  const isDone = () => campaign.untilLost === true && total.lost > 0;

  async function cycles(count: number, killServer: (directory: string, acknowledged: Acknowledged) => Promise<number>) {
    let [directory, acknowledged] = ["", new Map() as Acknowledged];
    for (let i = 0; i < count && !isDone(); i++) {
      if (i % CYCLES_PER_DIRECTORY === 0) [directory, acknowledged] = [tempDir(), new Map()];
      total.acknowledged += await killServer(directory, acknowledged);
      total.cycles++;
      const { lost, problems } = await inspect(directory, acknowledged);
      total.lost += lost.length;
      total.problems.push(...problems);
      // Reported once, and not again with every cycle that follows.
      for (const uid of lost) acknowledged.delete(uid);
    }
  }

  async function serverCycles(): Promise<void> {
    let served: ServedDirectory | undefined;
    for (let i = 0; i < campaign.serverCycles; i++) {
      if (i % CYCLES_PER_DIRECTORY === 0) {
        if (served !== undefined) total.problems.push(...(await served.verify()));
        served = new ServedDirectory(tempDir());
      }
      const run = await (served as ServedDirectory).run(async (kill) => kill());
      total.cycles++;
      total.acknowledged += run.acknowledged;
      total.lost += run.lost.length;
      total.problems.push(...run.problems);
      total.startMs.push(run.startMs);
    }
    if (served !== undefined) total.problems.push(...(await served.verify()));
    total.startMs.sort((a, b) => a - b);
  }

  const mode = campaign.control ? "control" : "honest";
  await Promise.all([
    cycles(campaign.writerCycles, (directory, acknowledged) => killWriter(directory, mode, acknowledged)),
    serverCycles(),
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
async function inspect(directory: string, acknowledged: Acknowledged) {
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
