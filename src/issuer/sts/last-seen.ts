import type { Store } from "../../store/port.js";

/** Remembers when identities were last seen, and writes that down now and then, not with every exchange. */
export interface LastSeen {
  touch(identityUid: string, nowMs: number): void;
  /** Writes down what is not yet; what could not be written stays for the next time. */
  flush(): Promise<void>;
}

/** So many are written in one transaction. */
const BATCH = 200;

/** Creates it. */
export function createLastSeen(store: Store): LastSeen {
  let seen = new Map<string, number>();

  function touch(identityUid: string, nowMs: number): void {
    seen.set(identityUid, Math.max(nowMs, seen.get(identityUid) ?? 0));
  }

  return {
    touch,
    async flush() {
      const pending = [...seen];
      seen = new Map();
      for (let i = 0; i < pending.length; i += BATCH) {
        try {
          await store.write(async (tx) => {
            for (const [uid, timeMs] of pending.slice(i, i + BATCH)) await tx.identities.updateLastSeen(uid, timeMs);
          });
        } catch (error) {
          for (const [uid, timeMs] of pending.slice(i)) touch(uid, timeMs);
          throw error;
        }
      }
    },
  };
}
