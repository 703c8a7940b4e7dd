// Outages of the database, of what is stored in it, and of the jobs that work on it.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import pg from "pg";
import { auditRow } from "../../audit/log-kit.js";
import { newDatabase } from "../../pg/databases.js";
import { waitUntil } from "../../support/wait-until.js";
import {
  type Defer,
  type Node,
  type Outages,
  onPostgres,
  openBeside,
  startNode,
  untilMetric,
  untilWaiting,
  WELL,
} from "./outage.js";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** A network between a node and PostgreSQL that delays each packet to it. */
async function startSlowNetwork(databaseUrl: string, defer: Defer) {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let delayMs = 0;
  const server = createServer((from) => {
    const to = connect(Number(target.port), target.hostname);
    for (const socket of [from, to]) {
      sockets.add(socket);
      socket.on("error", () => {});
    }
    from.on("data", (chunk) => setTimeout(() => to.write(chunk), delayMs));
    from.on("close", () => to.destroy());
    to.on("data", (chunk) => from.write(chunk));
    to.on("close", () => from.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  defer(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const url = new URL(databaseUrl);
  url.port = String(typeof address === "object" && address?.port);
  return {
    url: url.href,
    slowDown(ms: number) {
      delayMs = ms;
    },
  };
}

/** Takes away the last entry of the chain that seals the log of the organisation of a node. */
function damageChain(node: Node, defer: Defer): void {
  const last = "(SELECT max(seq) FROM audit_chain WHERE root_uid = ?)";
  const changed = openBeside(node, defer)
    .prepare(`DELETE FROM audit_chain WHERE root_uid = ? AND seq = ${last}`)
    .run(node.group, node.group);
  assert.equal(changed.changes, 1);
}

export const storeOutages: Outages = {
  "a table of the database was changed by somebody": {
    alerts: ["ArborErrors"],
    async run(recording, defer) {
      const node = await startNode(defer);
      const read = () => node.call("GET", "/iam/v2beta1/roles");
      await recording.scrape(node.metrics, WELL, read);
      recording.beginOutage();
      openBeside(node, defer).exec("ALTER TABLE roles RENAME TO roles_before");
      await recording.scrape(node.metrics, 13, async () => assert.equal(await read(), 500));
    },
  },
  "the data directory is removed": {
    alerts: ["ArborDatabaseDown", "ArborDatabaseFault", "ArborUnavailable"],
    async run(recording, defer) {
      const node = await startNode(defer);
      const read = () => node.call("GET", `/iam/v2beta1/groups/${node.group}`);
      await recording.scrape(node.metrics, WELL, read);
      recording.beginOutage();
      rmSync(node.data, { recursive: true });
      await waitUntil(async () => (await read()) === 503, 60_000);
      await untilMetric(node, "arbor_database_up", {}, (up) => up === 0);
      await recording.scrape(node.metrics, 13, read);
    },
  },
  "another program holds the lock of the database": {
    alerts: ["ArborOverload", "ArborLatency"],
    async run(recording, defer) {
      const node = await startNode(defer, { maxWait: "1s" });
      await recording.scrape(node.metrics, WELL, node.createGroup);
      recording.beginOutage();
      openBeside(node, defer).exec("BEGIN IMMEDIATE");
      await recording.scrape(node.metrics, 14, async () => {
        const statuses = await Promise.all(Array.from({ length: 200 }, node.createGroup));
        assert.deepEqual([...new Set(statuses)], [503]);
      });
    },
  },
  "another program holds the lock, and calls wait for it": {
    alerts: ["ArborWriteQueue"],
    async run(recording, defer) {
      const node = await startNode(defer, { maxWait: "10m" });
      await recording.scrape(node.metrics, WELL, node.createGroup);
      recording.beginOutage();
      const db = openBeside(node, defer);
      db.exec("BEGIN IMMEDIATE");
      const calls = Array.from({ length: 80 }, node.createGroup);
      defer(() => Promise.allSettled(calls));
      await recording.scrape(node.metrics, 2, () => untilWaiting(node, 65));
      recording.hold(7);
    },
  },
  "another program holds the lock, and no job can be run": {
    alerts: ["ArborJobNotRun", "ArborKeyChangeOverdue"],
    async run(recording, defer) {
      const node = await startNode(defer);
      await untilMetric(
        node,
        "arbor_job_last_run_timestamp_seconds",
        { job_name: "key-rotation" },
        (value) => value > 0,
      );
      await recording.scrape(node.metrics, WELL, undefined, node.nowMs);
      recording.beginOutage();
      openBeside(node, defer).exec("BEGIN IMMEDIATE");
      node.harness.skewMs = 400 * DAY_MS;
      await untilMetric(node, "arbor_job_overdue_seconds", {}, (value) => value > 300);
      await recording.scrape(node.metrics, 2, undefined, node.nowMs);
      recording.hold(8);
    },
  },
  "somebody has added a trigger that keeps the audit log from being sealed": {
    alerts: ["ArborJobFails", "ArborAuditSealerLag", "ArborAuditUnsealedRows"],
    async run(recording, defer) {
      const node = await startNode(defer);
      await recording.scrape(node.metrics, WELL, node.createGroup);
      recording.beginOutage();
      openBeside(node, defer).exec(
        "CREATE TRIGGER planted BEFORE INSERT ON audit_chain BEGIN SELECT RAISE(ABORT, 'planted'); END",
      );
      const { store } = node.harness.app.installation;
      const row = auditRow(node.group, { timeMs: Date.now() });
      for (let i = 0; i < 40; i++)
        await store.write(async (tx) => {
          for (let j = 0; j < 100; j++) await tx.audit.append(row);
        });
      await untilMetric(node, "arbor_job_failures", { job_name: "audit-sealer" }, (failures) => failures >= 3);
      node.harness.skewMs = 10 * MINUTE_MS;
      await untilMetric(node, "arbor_audit_sealer_lag_seconds", {}, (lag) => lag > 300);
      await recording.scrape(node.metrics, 2);
      recording.hold(8);
    },
  },
  "the audit log of an organisation was changed": {
    alerts: ["ArborEventsStopped"],
    async run(recording, defer) {
      const node = await startNode(defer);
      await node.createGroup();
      await untilMetric(node, "arbor_audit_unsealed_rows", {}, (rows) => rows === 0);
      await recording.scrape(node.metrics, WELL);
      recording.beginOutage();
      damageChain(node, defer);
      await node.createGroup();
      await untilMetric(node, "arbor_audit_stopped_chains", {}, (chains) => chains > 0);
      await recording.scrape(node.metrics, 2);
      recording.hold(2);
    },
  },
  "the active key of API tokens is removed from the database": {
    alerts: ["ArborNoActiveKey"],
    async run(recording, defer) {
      const node = await startNode(defer);
      await recording.scrape(node.metrics, WELL);
      recording.beginOutage();
      const removed = openBeside(node, defer)
        .prepare("DELETE FROM keys WHERE purpose = 'api-token' AND state = 'active'")
        .run();
      assert.equal(removed.changes, 1);
      await untilMetric(node, "arbor_signing_keys", { purpose: "api-token", state: "active" }, (keys) => keys === 0);
      await recording.scrape(node.metrics, 2);
      recording.hold(3);
    },
  },
  "a program holds an old snapshot of the database, and another writes": {
    alerts: ["ArborWalLarge"],
    async run(recording, defer) {
      const node = await startNode(defer);
      await recording.scrape(node.metrics, WELL);
      recording.beginOutage();
      const reader = openBeside(node, defer);
      reader.exec("BEGIN; SELECT count(*) FROM groups");
      const writer = openBeside(node, defer);
      writer.pragma("synchronous = OFF");
      writer.exec("CREATE TABLE planted (text BLOB)");
      const insert = writer.prepare("INSERT INTO planted VALUES (zeroblob(?))");
      for (let i = 0; i < 9; i++) insert.run(128 * 2 ** 20);
      await recording.scrape(node.metrics, 2);
      recording.hold(16);
    },
  },
  "PostgreSQL: a session has locked a table": {
    alerts: ["ArborDatabaseConnections"],
    async run(recording, defer) {
      const databaseUrl = await newDatabase();
      const node = await startNode(defer, { ...onPostgres(databaseUrl), databasePoolSize: "2" });
      await recording.scrape(node.metrics, WELL, node.createGroup);
      recording.beginOutage();
      const client = new pg.Client({ connectionString: databaseUrl });
      await client.connect();
      defer(() => client.end());
      await client.query("BEGIN; LOCK TABLE groups");
      const calls = Array.from({ length: 20 }, node.createGroup);
      defer(() => Promise.allSettled(calls));
      await recording.scrape(node.metrics, 2, () => untilWaiting(node, 1));
      recording.hold(6);
    },
  },
  "PostgreSQL: the network to it is slow": {
    alerts: ["ArborCommitsSlow"],
    async run(recording, defer) {
      const network = await startSlowNetwork(await newDatabase(), defer);
      const node = await startNode(defer, onPostgres(network.url));
      await recording.scrape(node.metrics, WELL, node.createGroup);
      recording.beginOutage();
      network.slowDown(150);
      await recording.scrape(node.metrics, 13, node.createGroup);
    },
  },
};
