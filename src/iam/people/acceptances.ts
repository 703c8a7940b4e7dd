// The first call of a person that names a group accepts what is pending there.
// The call itself may only read, so this is written down after its answer.
import type { Clock } from "../../kernel/clock.js";
import type { Ids } from "../../kernel/ids.js";
import type { Store, Tx } from "../../store/port.js";
import { acceptBindingsAt, MAX_ACCEPTED } from "./pending-bindings.js";

/** Notes which pending bindings are used, and accepts them soon after. */
export interface Acceptances {
  /**
   * Notes that a call of a person was admitted by a pending binding.
   *
   * @param place the uid of anything in the organisation
   */
  note(identityUid: string, place: string): void;
  /** Accepts what was noted. What cannot be written is noted again by the next call. */
  flush(): Promise<void>;
  /** Accepts what was noted and notes nothing more. */
  stop(): Promise<void>;
}

/** What it needs. */
export interface AcceptancesDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly onProblem: (problem: string, error: unknown) => void;
}

/** How long calls are collected before they are written down, in milliseconds. */
const DELAY_MS = 100;
/** How many pairs of person and organisation are remembered at most. */
const MAX_NOTED = 10_000;

interface Noted {
  readonly identityUid: string;
  readonly place: string;
}

/** Creates it. */
export function createAcceptances({ store, clock, ids, onProblem }: AcceptancesDeps): Acceptances {
  let noted = new Map<string, Noted>();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function accept(tx: Tx, { identityUid, place }: Noted): Promise<boolean> {
    const uids = await acceptBindingsAt(tx, identityUid, place);
    const [subjectUid] = uids;
    if (subjectUid !== undefined) {
      await tx.audit.append({
        rootUid: place,
        timeMs: clock(),
        type: "dev.arbor.bindings.binding.accepted.v1",
        method: "first call",
        subjectUid,
        actorUid: identityUid,
        tokenId: "",
        requestId: ids.newId(),
        remoteAddress: "",
      });
    }
    return uids.length === MAX_ACCEPTED;
  }

  async function flush(): Promise<void> {
    const batch = noted;
    noted = new Map();
    // One organisation of one person is one unit of work, so that none takes long.
    for (const one of batch.values()) {
      try {
        while (await store.write((tx) => accept(tx, one)));
      } catch (error) {
        onProblem("bindings could not be accepted", error);
      }
    }
  }

  return {
    note(identityUid, place) {
      if (stopped || noted.size >= MAX_NOTED) return;
      noted.set(`${identityUid} ${place}`, { identityUid, place });
      timer ??= setTimeout(() => {
        timer = undefined;
        void flush();
      }, DELAY_MS).unref();
    },
    flush,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await flush();
    },
  };
}
