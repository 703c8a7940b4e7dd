// Kills nodes that share a PostgreSQL database, one at a time and at random moments, while clients that retry write through
// all of them, and compares what was acknowledged with what is stored.
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { newDatabase, withClient } from "../pg/databases.js";
import { freePort } from "../support/free-port.js";
import { tempDir } from "../support/temp-dir.js";
import { grpcApi, restApi } from "./api.js";
import { Recorder } from "./recorder.js";
import { type RetryCounts, retrying } from "./retries.js";
import { createOwner, findViewer, type Service, startService, verifyDatabase } from "./service.js";
import { startWriters } from "./writers.js";

export interface NodeKills {
  readonly kills: number;
  readonly nodes: number;
  /** The database undoes some updates as it commits them, and clients do not retry. */
  readonly control?: boolean;
}

export interface NodeKillsResult extends RetryCounts {
  readonly acknowledged: number;
  /** Calls that failed, after the retries of their client. */
  readonly failed: readonly string[];
  readonly lost: readonly string[];
  /** Everything else: duplicates, stale reads, changes without an audit row, what `arbor check` finds. */
  readonly problems: readonly string[];
  /** From a kill until the node listens again, in milliseconds, the shortest first. */
  readonly restartMs: readonly number[];
}

const WRITERS = 6;
const PAUSE_MS = 20;
/** A node is killed this long after the one before has started, at random. */
const [SHORTEST_MS, LONGEST_MS] = [300, 2_500];

/** Undoes one in ten updates of groups within their transaction. */
const LOSE_UPDATES = `
  CREATE FUNCTION lose_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.description = '2' AND random() < 0.1 THEN
      UPDATE groups SET description = OLD.description WHERE uid = NEW.uid;
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER lose_update AFTER UPDATE ON groups
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose_update()`;

/** Runs a campaign. */
export async function runNodeKills({ kills, nodes: count, control = false }: NodeKills): Promise<NodeKillsResult> {
  const url = await newDatabase();
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const flags = ["--database-url", url, "--master-key-file", masterKeyFile];
  const { group, token } = await createOwner(flags, "node-kills.example");
  if (control) await withClient(url, (client) => client.query(LOSE_UPDATES));
  const ports = await Promise.all(Array.from({ length: count }, () => freePort()));
  const nodes: Service[] = [];
  try {
    for (const port of ports) nodes.push(await startService(flags, [], port));
    const role = await findViewer(nodes[0] as Service, token);
    const counts = { retries: 0, found: 0 };
    const apis = Array.from({ length: WRITERS }, (_, n) => {
      const create = n % 2 === 0 ? restApi : grpcApi;
      // Each client begins at another node.
      const all = ports.map((_, i) => create(`http://127.0.0.1:${ports[(n + i) % count]}`, token));
      return control ? (all[0] as (typeof all)[number]) : retrying(all, counts);
    });
    const recorder = new Recorder();
    const writers = startWriters({ recorder, apis, group, role, pauseMs: PAUSE_MS });
    const restartMs: number[] = [];
    for (let kill = 0; kill < kills; kill++) {
      await sleep(SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS));
      const victim = Math.floor(Math.random() * count);
      restartMs.push(await replace(nodes, victim, () => startService(flags, [], ports[victim])));
    }
    await sleep(LONGEST_MS);
    await writers.stop();
    for (const api of apis) api.close();
    const { lost, problems } = await recorder.compare((sql) =>
      withClient(url, async (client) => (await client.query(sql)).rows),
    );
    const wrong = writers.wrong.map((text) => `wrong answer: ${text}`);
    const all = [...problems, ...wrong, ...(await verifyDatabase(flags))];
    const { acknowledged } = recorder;
    restartMs.sort((a, b) => a - b);
    return { ...counts, acknowledged, failed: writers.failed, lost, problems: all, restartMs };
  } finally {
    for (const { child } of nodes) child.kill("SIGKILL");
  }
}

async function replace(nodes: Service[], index: number, start: () => Promise<Service>): Promise<number> {
  const { child } = nodes[index] as Service;
  const startMs = performance.now();
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  nodes[index] = await start();
  return performance.now() - startMs;
}
