import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { buildChunkQuery } from "../../../src/pipeline/resource/unpaginated-list.js";
import { childUid, rootUid } from "../../support/rows.js";

const root = rootUid(1);
const [one, two] = [childUid(root, 1), childUid(root, 2)];
const uidp = (init: { ids?: string[]; childrenOf?: string }) => create(UIDPFilterSchema, init);

describe("the query for a chunk of a list", () => {
  for (const [what, request, filter] of [
    ["everything", {}, {}],
    ["by id", { id: one }, { uids: [one] }],
    ["by ids", { uidp: uidp({ ids: [two, one] }) }, { uids: [one, two] }],
    ["by id and ids that hold it", { id: one, uidp: uidp({ ids: [two, one] }) }, { uids: [one] }],
    ["by id and ids that do not", { id: one, uidp: uidp({ ids: [two] }) }, { uids: [] }],
    ["by place and name", { name: "n", uidp: uidp({ childrenOf: "/" }) }, { name: "n", childrenOf: "/" }],
  ] as const) {
    test(what, () => {
      const query = buildChunkQuery(request, { visible: [root] }, undefined);
      assert.deepEqual(query.filter, filter);
      assert.deepEqual([query.visible, query.after, query.skip, query.uncounted], [[root], undefined, 0, true]);
      assert.deepEqual(query.order, { field: "uid", descending: false });
    });
  }

  test("continues after a position, with built-in rows and equal columns", () => {
    const after = { key: one, uid: one };
    const query = buildChunkQuery({}, { visible: [root], also: [two], equals: { keyId: "k" } }, after);
    assert.deepEqual([query.after, query.also, query.filter], [after, [two], { equals: { keyId: "k" } }]);
  });

  for (const request of [{ id: "UPPER" }, { uidp: uidp({ ids: ["x y"] }) }, { name: "\u0000" }]) {
    test(`rejects ${JSON.stringify(request)}`, () => {
      assert.throws(() => buildChunkQuery(request, { visible: [] }, undefined), ApiError);
    });
  }
});
