// Faults of the machine that a service on SQLite runs on: what it answers, logs and counts meanwhile, how it comes back,
// and whether what it acknowledged is there afterwards. Most need root, and a mount namespace of their own.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  fileSizeLimit,
  fullDisk,
  immutableFiles,
  readOnlyFileSystem,
  removeDatabase,
  removeLog,
  replaceDatabase,
} from "./disk-faults.js";
import { expectResponses, type HostFault, preloadOf, report, startWritten, WRITE_MS } from "./fault-report.js";
import type { HostService } from "./host-service.js";
import { runArbor } from "./service.js";
import { startOnFaultyDisk } from "./start-faults.js";
import { vacuumInLittleRoom } from "./vacuum-room.js";

/** The length of a request that waits for its body. */
const BODY_BYTES = 10;

/** Opens connections and sends the same text on each; nothing if it is empty. */
async function openMany(url: string, count: number, text: string): Promise<readonly Socket[]> {
  const { port } = new URL(url);
  const sockets = Array.from({ length: count }, () => connect(Number(port), "127.0.0.1").on("error", () => {}));
  if (text !== "") for (const socket of sockets) socket.write(text);
  await sleep(500);
  return sockets;
}

/** Sends the body that the first request of {@link openMany} announced, and returns whether a response comes. */
async function completeRequest([socket = assert.fail()]: readonly Socket[]): Promise<boolean> {
  socket.write("{}".padEnd(BODY_BYTES));
  const [response] = await Promise.race([once(socket, "data"), sleep(5_000, [""])]);
  return String(response).startsWith("HTTP/1.1 ");
}

async function runConnections(
  name: string,
  service: HostService,
  limit: () => void,
  metric: readonly [string, Record<string, string>],
  text = "",
) {
  const first = await openMany(service.url, 100, text);
  limit();
  const more = await openMany(service.url, 500, text);
  await service.untilMetric(metric[0], metric[1], (value) => value > 0);
  const before = service.recorder.acknowledged;
  await sleep(WRITE_MS * 2);
  const during = service.recorder.acknowledged - before;
  const isServed = text === "" ? during > 0 : await completeRequest(first);
  if (!isServed) service.problems.push("connections that were open were not served");
  const readable = await service.metric("arbor_database_up");
  if (readable !== 1) service.problems.push(`the database was read: ${readable}`);
  process.kill(service.pid, "SIGHUP");
  await service.untilLogged("the master key file");
  await runArbor(["audit", "export", "--data", service.data, "--root", service.owner.group]).catch((error) =>
    service.problems.push(String(error)),
  );
  for (const socket of [...first, ...more]) socket.destroy();
  await sleep(1_500);
  const answers = await service.ask();
  expectResponses(service, answers, {
    restWrite: /^OK$/,
    grpcWrite: /^OK$/,
    restRead: /^OK$/,
    readyz: /^200 ok/,
    healthz: /^200 ok/,
  });
  await service.stopWriters();
  await service.end("SIGTERM");
  const lost = await service.compare();
  return report({
    fault: name,
    service,
    answers,
    lost,
    recovery: `by itself when connections close; ${during} writes meanwhile`,
  });
}

const manyConnections: HostFault = async (directory) => {
  const service = await startWritten({ data: join(directory, "data"), wrapper: ["prlimit", "--nofile=500:500"] });
  // Idle ones close for others, as those of the writers may between two writes, so each waits for its body.
  const text =
    `POST /chainguard.platform.iam.v2beta1.GroupsService/CreateGroup HTTP/1.1\r\nHost: ${new URL(service.url).host}\r\nContent-Type: application/json\r\n` +
    `Authorization: Bearer ${service.owner.token}\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`;
  const metric = ["arbor_requests_rejected_total", { reason: "connections" }] as const;
  return runConnections("more connections than descriptors", service, () => {}, metric, text);
};

const noDescriptors: HostFault = async (directory) => {
  const service = await startWritten({ data: join(directory, "data") });
  const limit = () => execFileSync("prlimit", [`--pid=${service.pid}`, "--nofile=200:20000"]);
  return runConnections("descriptors taken away", service, limit, ["arbor_file_shortages_total", {}]);
};

const HOUR_MS = 3_600_000;

/** @param isExpiring whether the token of the writers expires before that time */
function clockJump(name: string, jumpMs: number, isExpiring = false): HostFault {
  return async (directory) => {
    const clockFile = join(directory, "clock");
    const settings = { CLOCK_FILE: clockFile };
    const service = await startWritten({
      data: join(directory, "data"),
      preload: preloadOf("set-clock.mjs"),
      settings,
    });
    const keys = async () => {
      const response = await fetch(`${service.url}/.well-known/jwks.json`);
      if (response.status !== 200) service.problems.push(`the keys were answered with ${response.status}`);
      return response.text();
    };
    const keysBefore = await keys();
    writeFileSync(clockFile, String(jumpMs));
    await service.untilMetric(
      "arbor_clock_jumps_total",
      { direction: jumpMs > 0 ? "forward" : "back" },
      (value) => value === 1,
    );
    const answers = await service.ask();
    const expected = isExpiring ? { restWrite: /^401/, grpcWrite: /^Unauthenticated/ } : { restWrite: /^OK/ };
    expectResponses(service, answers, { ...expected, readyz: /^200 ok/, healthz: /^200 ok/ });
    await sleep(WRITE_MS);
    if ((await keys()) !== keysBefore) service.problems.push("the keys changed");
    writeFileSync(clockFile, "0");
    const ms = await service.untilWritten();
    await service.untilMetric("arbor_audit_unsealed_rows", {}, (value) => value < 200);
    await sleep(WRITE_MS);
    expectResponses(service, await service.ask(), { restWrite: /^OK$/, grpcWrite: /^OK$/, readyz: /^200 ok/ });
    await service.stopWriters();
    // A wrong clock makes tokens invalid: that is no other error.
    const isExpected = (problem: string) => /^(REST \w+ 401|gRPC \w+ Unauthenticated)/.test(problem);
    const problems = service.problems.filter((problem) => !isExpected(problem));
    service.problems.splice(0, service.problems.length, ...problems);
    await service.end("SIGTERM");
    await runArbor(["check", "--data", service.data]).catch((error) => service.problems.push(String(error)));
    await runArbor(["audit", "verify", "--data", service.data]).catch((error) => service.problems.push(String(error)));
    const lost = await service.compare();
    return report({
      fault: name,
      service,
      answers,
      lost,
      recovery: `by itself: ${ms} ms to the next write when the clock is right again`,
    });
  };
}

/** All faults by their names. */
export const hostFaults: Readonly<Record<string, HostFault>> = {
  full: fullDisk,
  "file-size": fileSizeLimit,
  immutable: immutableFiles,
  "read-only": readOnlyFileSystem,
  start: startOnFaultyDisk,
  vacuum: vacuumInLittleRoom,
  replaced: replaceDatabase,
  removed: removeDatabase,
  "wal-removed": removeLog,
  connections: manyConnections,
  descriptors: noDescriptors,
  "clock+1h": clockJump("clock 1 h forward", HOUR_MS),
  "clock-1h": clockJump("clock 1 h back", -HOUR_MS),
  "clock+1d": clockJump("clock 1 day forward", 24 * HOUR_MS, true),
  "clock-1d": clockJump("clock 1 day back", -24 * HOUR_MS),
};
