// How many streams of events there may be: each holds memory and a connection for as long as its caller likes.
import { resourceExhausted } from "../kernel/errors.js";

/** Counts open streams. */
export interface StreamCounter {
  /**
   * Counts one more stream of an identity until the returned function is called.
   *
   * @throws ApiError RESOURCE_EXHAUSTED when one more is too many
   */
  take(identityUid: string): () => void;
}

const MAX_TOTAL = 1_000;
const MAX_PER_IDENTITY = 50;

/** Creates the counter. */
export function createStreamCounter(maxTotal = MAX_TOTAL, maxPerIdentity = MAX_PER_IDENTITY): StreamCounter {
  let total = 0;
  const counts = new Map<string, number>();

  return {
    take(identityUid) {
      const count = counts.get(identityUid) ?? 0;
      if (total >= maxTotal) throw resourceExhausted(`there are ${maxTotal} streams of audit events`);
      if (count >= maxPerIdentity)
        throw resourceExhausted(`this identity has ${maxPerIdentity} streams of audit events`);
      total++;
      counts.set(identityUid, count + 1);
      return () => {
        total--;
        const left = (counts.get(identityUid) ?? 0) - 1;
        if (left > 0) counts.set(identityUid, left);
        else counts.delete(identityUid);
      };
    },
  };
}
