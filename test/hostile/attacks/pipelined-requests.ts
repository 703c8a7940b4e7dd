// Sends requests ahead of their responses, thousands at once on each connection, and reads nothing for a while.
import { connect } from "node:net";
import { type Attack, Counts, pause, pick } from "../support/attack.js";
import type { Target } from "../support/world.js";

const CONNECTIONS = 100;
const AT_ONCE = 3_000;
const MAX_CONNECTIONS = 3_000;
const HELD_MS = 200;
const PATHS = ["/healthz", "/iam/v2beta1/groups", "/nothing"];

export const attack: Attack = {
  async run(target, stop) {
    const counts = new Counts();
    await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => flood(target, i, counts, stop)));
    return counts;
  },
};

async function flood({ url, addresses }: Target, lane: number, counts: Counts, stop: AbortSignal): Promise<void> {
  const { host, port } = new URL(url);
  const requests = Buffer.from(`GET ${pick(PATHS, lane)} HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(AT_ONCE), "latin1");
  for (let i = 0; i < MAX_CONNECTIONS / CONNECTIONS && !stop.aborted; i++) {
    const socket = connect({ host: "127.0.0.1", port: Number(port), localAddress: pick(addresses, lane) });
    counts.add("connections");
    socket.on("error", () => {});
    socket.write(requests);
    await pause(HELD_MS, stop);
    socket.resume();
    await pause(HELD_MS, stop);
    socket.destroy();
  }
}
