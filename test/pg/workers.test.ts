// `arbor serve --workers` on PostgreSQL: the connections of all workers together.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { type Service, startHost, startService } from "../e2e/process.js";
import { sendHttp } from "../support/send-http.js";
import { tempDir } from "../support/temp-dir.js";
import { newDatabase, withClient } from "./databases.js";

/** Calls at the same time: more than the pools together have connections. */
const CALLS = 40;
const ROUNDS = 10;

const host = startHost();
let service: Service | undefined;
after(async () => {
  service?.signal("SIGKILL");
  await service?.ended;
  host.close();
});

test("workers under load divide the connections of the node", async () => {
  const url = await newDatabase();
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const flags = ["--database-url", url, "--master-key-file", masterKeyFile, "--base-url", "http://arbor.example"];
  const bootstrapped = await host.run(["bootstrap", "--org", "workers.example", "--json", ...flags]);
  const { group, token } = JSON.parse(bootstrapped.stdout) as { group: string; token: string };
  const own = ["--workers", "2", "--database-pool-size", "6", "--metrics-listen", "off", "--access-log", "off"];
  service = await startService(tempDir(), ...flags, ...own);
  const { url: base } = service;
  const call = async () => {
    const path = `${base}/iam/v2beta1/groups/${group}`;
    const { status, text } = await sendHttp(path, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(status, 200, text);
  };
  const counts: number[] = [];
  await withClient(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    let isOver = false;
    const counting = (async () => {
      while (!isOver) {
        const sql =
          "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND pid <> $1";
        counts.push((await client.query<{ count: number }>(sql, [rows[0]?.pid])).rows[0]?.count ?? 0);
        await sleep(5);
      }
    })();
    for (let round = 0; round < ROUNDS; round++) await Promise.all(Array.from({ length: CALLS }, call));
    isOver = true;
    await counting;
  });
  assert.equal(Math.max(...counts), 6, counts.join());
});
