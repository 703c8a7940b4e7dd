// Tells the work for a caller that the caller has gone.
import { CALLER_GONE } from "../../kernel/errors.js";
import { isGone, type ResponseWriter } from "./http-message.js";
import { flushPerTick } from "./tick.js";

/**
 * A connection that closes ends hundreds of calls in one event. What each of them gives up takes a tenth of a
 * millisecond, for which other callers wait.
 */
const CALLS_PER_TICK = 16;

const giveUp = flushPerTick<AbortController>("answers", (call) => call.abort(CALLER_GONE), rethrow, CALLS_PER_TICK);

/** Fires with {@link CALLER_GONE} soon after the caller went away before it had its answer. */
export function goneSignal(answer: ResponseWriter): AbortSignal {
  const controller = new AbortController();
  if (isGone(answer)) controller.abort(CALLER_GONE);
  // A stream that was reset counts as ended by its writer.
  else answer.once("close", () => (!answer.writableEnded || "rstCode" in answer) && giveUp(controller));
  return controller.signal;
}

function rethrow(error: unknown): void {
  throw error;
}
