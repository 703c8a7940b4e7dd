// Writes groups through the write queue of a data directory until it is killed,
// and prints each one that is acknowledged: `<uid> <version>`. Run as
//
//   node --import tsx test/e2e/kill9-writer.ts DIRECTORY honest|control
//
// In control mode it prints before the commit, which a kill must show to be a lie.
import { writeSync } from "node:fs";
import { randomIds } from "../../src/kernel/ids.js";
import { systemClock as clock } from "../../src/kernel/time.js";
import { type GroupRow, groupKind } from "../../src/store/iam/groups.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Tx } from "../../src/store/transaction.js";
import { groupRow } from "../support/rows.js";
import { nameOf } from "./kill9-names.js";

/** How many calls are in flight at any moment. */
const LANES = 24;
/** How many groups a lane writes below each other before it begins at the root again. */
const DEPTH = 4;

const [directory = "", mode = "honest"] = process.argv.slice(2);
const store = openSqlite({ directory, exclusive: true });

async function write(work: (tx: Tx) => Promise<void>, uid: string, version: number): Promise<void> {
  const print = () => void writeSync(1, `${uid} ${version}\n`);
  await store.write(async (tx) => {
    await work(tx);
    await tx.audit.append({
      rootUid: uid.slice(0, 40),
      timeMs: clock(),
      type: "test.group.written.v1",
      method: "",
      subjectUid: uid,
      actorUid: "",
      tokenId: "",
      requestId: "",
      remoteAddress: "",
    });
    if (mode === "control") print();
  });
  if (mode !== "control") print();
}

function insert(row: GroupRow): Promise<void> {
  return write(async (tx) => void (await tx.table(groupKind).insert(row)), row.uid, 1);
}

const root = randomIds.newUid();
await insert(groupRow(root, { name: nameOf(1), createTimeMs: clock(), updateTimeMs: clock() }));

async function lane(): Promise<never> {
  for (;;) {
    let parent = root;
    for (let depth = 0; depth < DEPTH; depth++) {
      const uid = randomIds.newUid(parent);
      await insert(groupRow(uid, { name: nameOf(1), createTimeMs: clock(), updateTimeMs: clock() }));
      // Renames move entries of lists, and must not get lost either.
      if (depth % 2 === 1) {
        await write(async (tx) => void (await tx.table(groupKind).update(uid, { name: nameOf(2) }, clock())), uid, 2);
      }
      parent = uid;
    }
  }
}

await Promise.all(Array.from({ length: LANES }, lane));
