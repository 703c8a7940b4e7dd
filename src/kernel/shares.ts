// Limits what is in use at one time, in all and by each holder, so that no holder takes what others need.
import { resourceExhausted } from "./errors.js";

/** How much may be in use: in all, and by each holder of a kind, such as an organisation. */
export interface ShareLimits<Kind extends string> {
  readonly total: number;
  readonly each: Readonly<Record<Kind, number>>;
}

/** Counts what is in use. */
export class Shares<Kind extends string> {
  readonly #what: string;
  readonly #limits: ShareLimits<Kind>;
  readonly #counts = new Map<Kind, Map<unknown, number>>();
  #total = 0;

  /** @param what the name of what is counted, in errors, such as "streams" */
  constructor(what: string, limits: ShareLimits<Kind>) {
    this.#what = what;
    this.#limits = limits;
  }

  /**
   * Counts one more until the returned function is called.
   *
   * @param holders whom it counts for; it is not limited for kinds that are left out
   * @throws ApiError RESOURCE_EXHAUSTED when one more is too many
   */
  take(holders: Readonly<Partial<Record<Kind, unknown>>>): () => void {
    const { total, each } = this.#limits;
    if (this.#total >= total) throw resourceExhausted(`there are ${total} ${this.#what}`, undefined, "streams");
    const kinds = (Object.keys(each) as Kind[]).filter((kind) => holders[kind] !== undefined);
    for (const kind of kinds) {
      if ((this.#counts.get(kind)?.get(holders[kind]) ?? 0) < each[kind]) continue;
      throw resourceExhausted(`this ${kind} has ${each[kind]} ${this.#what}`, undefined, "streams");
    }
    const add = (by: number) => {
      this.#total += by;
      for (const kind of kinds) this.#add(kind, holders[kind], by);
    };
    add(1);
    let isTaken = true;
    return () => {
      if (isTaken) add(-1);
      isTaken = false;
    };
  }

  #add(kind: Kind, holder: unknown, by: number): void {
    const counts = this.#counts.get(kind) ?? new Map<unknown, number>();
    this.#counts.set(kind, counts);
    const count = (counts.get(holder) ?? 0) + by;
    if (count === 0) counts.delete(holder);
    else counts.set(holder, count);
  }
}
