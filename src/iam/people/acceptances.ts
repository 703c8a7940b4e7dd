// The first call of a person that names a group accepts the pending bindings there. The call itself may be a read, so
// the acceptance is written after the response.
import { formatBody } from "../../kernel/audit-body.js";
import type { Ids } from "../../kernel/ids.js";
import type { Clock } from "../../kernel/time.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import { acceptBindingsAt, BINDING_ACCEPTED, describeBindings, MAX_ACCEPTED } from "./pending-bindings.js";

export interface AcceptancesDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly onProblem: (problem: string, error: unknown) => void;
}

/** How long calls are collected before a batch is written, in milliseconds. */
const DELAY_MS = 100;
/** The largest number of queued pairs of person and organisation. */
const MAX_QUEUED = 10_000;

interface Acceptance {
  readonly identityUid: string;
  readonly groupUid: string;
}

/** Creates a queue of the pending bindings that calls have used. It accepts them in batches. */
export function createAcceptances({ store, clock, ids, onProblem }: AcceptancesDeps) {
  let queue = new Map<string, Acceptance>();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function accept(tx: Tx, { identityUid, groupUid }: Acceptance): Promise<boolean> {
    const uids = await acceptBindingsAt(tx, identityUid, groupUid, "use");
    const [subjectUid] = uids;
    if (subjectUid !== undefined) {
      await tx.audit.append({
        rootUid: groupUid,
        timeMs: clock(),
        type: BINDING_ACCEPTED,
        method: "first call",
        body: formatBody(await describeBindings(tx, "after", uids), BINDING_ACCEPTED),
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
    const batch = queue;
    queue = new Map();
    // Each person and organisation is a unit of work of its own, so that every unit is short.
    for (const one of batch.values()) {
      try {
        while (await store.write((tx) => accept(tx, one)));
      } catch (error) {
        onProblem("bindings could not be accepted", error);
      }
    }
  }

  return {
    /**
     * Queues the organisation in which a pending binding has authorized a call.
     *
     * @param groupUid the uid of any group in the organisation
     */
    note(identityUid: string, groupUid: string): void {
      if (stopped || queue.size >= MAX_QUEUED) return;
      queue.set(`${identityUid} ${groupUid}`, { identityUid, groupUid });
      timer ??= setTimeout(() => {
        timer = undefined;
        void flush();
      }, DELAY_MS).unref();
    },
    /** Accepts what is queued. What cannot be written is queued again by the next call. */
    flush,
    /** Accepts what is queued and closes the queue. */
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      await flush();
    },
  };
}
