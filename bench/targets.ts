import { join } from "node:path";
import { rootOf } from "../src/kernel/uidp.js";
import { openDatabase } from "../src/store/sqlite/driver.js";
import { firstLevel, groupOfIdentity, type Seeded } from "./seed.js";

/** A read, and the reader that may do it. */
export interface Target {
  readonly uid: string;
  /** The number of the identity whose token to use. */
  readonly reader: number;
}

/**
 * Reads spread over all groups below the main root and over `readers` identities, each allowed for
 * its reader, in random order: neighbours in the database would be in pages that are cached already.
 */
export function targetsIn(seeded: Seeded, readers: number, count: number): Target[] {
  const { directory, tree } = seeded;
  const level = firstLevel(seeded);
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  const sql = "SELECT uid FROM groups WHERE uid >= ? AND uid < ? ORDER BY uid";
  const uids = db.prepare(sql).pluck().all(tree.root, `${tree.root}0`) as string[];
  db.close();
  const bySubtree = new Map(level.map((top): [string, string[]] => [top, []]));
  for (const uid of uids) bySubtree.get(uid.slice(0, rootOf(uid).length + 17))?.push(uid);
  bySubtree.set(tree.root, uids);
  // A linear congruential generator: the same targets on every run.
  let state = 1;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  return Array.from({ length: count }, (_, i) => {
    const reader = i % readers;
    const readable = bySubtree.get(groupOfIdentity(tree, level, reader)) ?? [];
    return { uid: readable[random(readable.length)] ?? tree.root, reader };
  });
}
