// The end of a chain that a verifier has seen before. Signatures cannot show that the end was cut off together with
// its head, or that the whole log is that of an earlier time: such a log was signed once.

import type { AuditCheckpoint } from "../store/port.js";
import type { Link } from "./chain.js";
import { type ChainPage, type Fault, findStart } from "./verify.js";

/** Finds whether a chain still has a remembered entry, while its pages are read. */
export interface RememberedHead {
  /** Passes the pages on. */
  watch(pages: AsyncIterable<ChainPage>): AsyncIterable<ChainPage>;
  /**
   * The fault where the chain does not have the entry any more; undefined where it does, and where retention has
   * deleted the entry meanwhile.
   *
   * @param end the last entry of the chain
   */
  findFault(end: Link): Fault | undefined;
}

/**
 * Begins to look for an entry.
 *
 * @param remembered the entry; nothing is looked for where it is undefined
 * @param checkpoint where the chain begins
 */
export function watchForHead(remembered: Link | undefined, checkpoint: AuditCheckpoint | undefined): RememberedHead {
  const start = findStart(checkpoint);
  let found = remembered !== undefined && start.seq === remembered.seq ? start.hash : undefined;
  return {
    async *watch(pages) {
      for await (const page of pages) {
        found ??= page.entries.find(({ seq }) => seq === remembered?.seq)?.hash;
        yield page;
      }
    },
    findFault(end) {
      if (remembered === undefined || remembered.seq < start.seq || remembered.hash === found) return undefined;
      const { seq } = remembered;
      if (end.seq < seq) {
        return {
          seq: end.seq + 1,
          what: `the log was cut or put back: it ends here, and entry ${seq} was there before`,
        };
      }
      return { seq, what: "the log was replaced: this entry is not the one that was there before" };
    },
  };
}
