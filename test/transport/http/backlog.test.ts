// Connections that are opened faster than the event loop turns.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { test } from "node:test";
import { bindPort } from "../../../src/transport/http/listener.js";

const CONNECTIONS = 700;
const SOMAXCONN = "/proc/sys/net/core/somaxconn";
const skip =
  (!existsSync(SOMAXCONN) || Number(readFileSync(SOMAXCONN, "utf8")) < CONNECTIONS) && "needs the sockets of Linux";

async function countWaiting(port: number): Promise<number> {
  const sockets = Array.from({ length: CONNECTIONS }, () => connect(port, "127.0.0.1").on("error", () => {}));
  // They connect in callbacks of `nextTick`, before which the event loop does not turn and accepts none.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  try {
    const [, ...lines] = readFileSync("/proc/net/tcp", "utf8").split("\n");
    const listening = lines.map((line) => line.trim().split(/\s+/)).find(isListening);
    return Number.parseInt(listening?.[4]?.split(":")[1] ?? "", 16);
  } finally {
    for (const socket of sockets) socket.destroy();
  }

  function isListening([, local, , state]: string[]): boolean {
    return state === "0A" && Number.parseInt(local?.split(":")[1] ?? "", 16) === port;
  }
}

test("the kernel keeps them until they are accepted", { skip }, async () => {
  const bound = await bindPort({ host: "127.0.0.1", port: 0 });
  try {
    assert.equal(await countWaiting(bound.address.port), CONNECTIONS);
  } finally {
    bound.close();
  }
});

test("of those to a server of Node's default it drops some: the control", { skip }, async () => {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as { port: number };
    const waiting = await countWaiting(port);
    assert.ok(waiting > 500 && waiting < CONNECTIONS, `${waiting} wait`);
  } finally {
    server.close();
  }
});
