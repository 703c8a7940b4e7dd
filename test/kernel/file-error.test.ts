import assert from "node:assert/strict";
import test from "node:test";
import { describeExposure } from "../../src/kernel/files.js";

const own = process.getuid?.() ?? 0;
const rows: readonly { readonly uid: number; readonly mode: number; readonly isPrivate: boolean }[] = [
  { uid: own, mode: 0o600, isPrivate: true },
  { uid: own, mode: 0o400, isPrivate: true },
  { uid: own, mode: 0o604, isPrivate: false },
  { uid: own, mode: 0o620, isPrivate: false },
  // Kubernetes gives the files of a mounted Secret to root and the group of the pod.
  { uid: 0, mode: 0o440, isPrivate: true },
  { uid: 0, mode: 0o640, isPrivate: true },
  { uid: 0, mode: 0o444, isPrivate: false },
  { uid: 0, mode: 0o660, isPrivate: false },
  { uid: 4_242_424, mode: 0o600, isPrivate: false },
];

for (const { uid, mode, isPrivate } of rows) {
  const owner = uid === 0 ? "root" : uid === own ? "this user" : "another user";
  test(`a file of ${owner} with mode ${mode.toString(8)} is ${isPrivate ? "" : "not "}private`, () => {
    assert.equal(describeExposure({ uid, mode }) === undefined, isPrivate);
  });
}
