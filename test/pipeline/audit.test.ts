// What a write leaves in the audit log, in the transaction of the write itself.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { failedPrecondition } from "../../src/kernel/errors.js";
import type { UnaryCall } from "../../src/pipeline/call.js";
import { type Handler, withOutcome } from "../../src/pipeline/handlers.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { childUid, groupRow } from "../support/rows.js";
import { errorOf, foreign, group, member, nowMs, type Pipeline, root, startPipeline } from "./pipeline.js";

const good = { parent: group, name: "n" };

describe("the audit log", () => {
  let p: Pipeline;
  before(async () => {
    p = await startPipeline();
  });
  beforeEach(() => p.reset());
  after(() => p.store.close());

  test("a write leaves one audit row that says who did what", async () => {
    const made = childUid(group, 0xabc);
    p.handler = () => ({ uid: made });
    p.now = nowMs + 5;
    const facts = { authorization: member, requestId: "req-1", remoteAddress: "192.0.2.7" };
    await p.start("Make", good, facts).answer;
    const { id: _, ...row } = (await newest()) ?? assert.fail();
    assert.deepEqual(row, {
      rootUid: root,
      timeMs: nowMs + 5,
      type: "test.thing.made.v1",
      method: "/arbor.test.rpc.Service/Make",
      subjectUid: made,
      actorUid: member,
      tokenId: "token-1",
      requestId: "req-1",
      remoteAddress: "192.0.2.7",
      version: 3,
      bodyHash: "",
      bodyBytes: 0,
      traceId: "",
      actorName: "identity",
    });
  });

  const subjects: readonly {
    method: string;
    request: Record<string, unknown>;
    handler: Handler;
    subject: string;
    root: string;
    reason: string;
  }[] = [
    {
      method: "Make",
      request: good,
      handler: () => ({ uid: childUid(group, 1) }),
      subject: childUid(group, 1),
      root,
      reason: "the resource the answer describes",
    },
    {
      method: "Make",
      request: good,
      handler: () => ({}),
      subject: group,
      root,
      reason: "else the scope of the request",
    },
    {
      method: "Make",
      request: good,
      handler: () => ({ uid: "" }),
      subject: group,
      root,
      reason: "an empty uid is none",
    },
    { method: "Any", request: {}, handler: () => ({}), subject: "", root: "", reason: "else nothing" },
    {
      method: "Any",
      request: {},
      handler: () => withOutcome({ uid: group }, { subjectUid: childUid(foreign, 3) }),
      subject: childUid(foreign, 3),
      root: foreign,
      reason: "before all what the outcome of the handler names",
    },
    {
      method: "Open",
      request: {},
      handler: () => ({ uid: group }),
      subject: group,
      root,
      reason: "of a method without a caller",
    },
  ];

  test("a response may be built after the commit, and take longer than a transaction may", async () => {
    const subjectUid = childUid(group, 5);
    let committed: string | undefined;
    p.handler = () =>
      withOutcome(
        async () => {
          await sleep(20);
          committed = (await newest())?.subjectUid;
          return { uid: "late" };
        },
        { subjectUid },
      );
    assert.deepEqual(await p.start("Make", good, { authorization: member }).answer, { uid: "late" });
    assert.equal(committed, subjectUid);
  });

  for (const { reason, ...row } of subjects) {
    test(`the subject of an audit row: ${reason}`, async () => {
      p.handler = row.handler;
      await p.start(row.method, row.request, { authorization: member }).answer;
      const audited = await newest();
      assert.equal(audited?.subjectUid, row.subject);
      assert.equal(audited?.rootUid, row.root);
      assert.equal(audited?.actorUid, row.method === "Open" ? "" : member);
    });
  }

  test("a read leaves no audit row", async () => {
    const rows = await auditCount();
    await p.start("Look", good, { authorization: member }).answer;
    assert.equal(await auditCount(), rows);
  });

  test("a write that changes nothing leaves no audit row", async () => {
    const rows = await auditCount();
    p.handler = () => ({ uid: group });
    p.changes = false;
    assert.deepEqual(await p.start("Make", good, { authorization: member }).answer, { uid: group });
    assert.equal(await auditCount(), rows);
    // Statements that match no row change none.
    p.handler = async (_request: never, { tx }: UnaryCall) => {
      await tx.table(roleBindingKind).delete(childUid(group, 0xabc));
      await tx.settings.find("test");
      return { uid: group };
    };
    await p.start("Make", good, { authorization: member }).answer;
    assert.equal(await auditCount(), rows);
    p.changes = true;
    await p.start("Make", good, { authorization: member }).answer;
    assert.equal(await auditCount(), rows + 1, "control");
  });

  const failures: readonly { thrown: unknown; code: Code; reason: string }[] = [
    { thrown: failedPrecondition("T", "no"), code: Code.FailedPrecondition, reason: "refuses" },
    { thrown: new TypeError("secret"), code: Code.Internal, reason: "has a defect" },
  ];
  for (const { thrown, code, reason } of failures) {
    test(`when the handler ${reason}, neither its rows nor an audit row remain`, async () => {
      const rows = await auditCount();
      const uid = childUid(group, 0xdead);
      p.handler = async (_request: never, { tx }: UnaryCall) => {
        await tx.table(groupKind).insert(groupRow(uid));
        throw thrown;
      };
      assert.equal((await errorOf(p.start("Make", good, { authorization: member }).answer)).code, code);
      assert.equal(await auditCount(), rows);
      assert.equal(await p.store.read((tx) => tx.table(groupKind).find(uid)), undefined);
    });
  }

  test("the handler's rows and the audit row are there together", async () => {
    const uid = childUid(group, 0xbeef);
    p.handler = async (_request: never, { tx }: UnaryCall) => {
      await tx.table(groupKind).insert(groupRow(uid));
      return { uid };
    };
    await p.start("Make", good, { authorization: member }).answer;
    await p.store.read(async (tx) => {
      assert.ok(await tx.table(groupKind).find(uid));
      assert.equal((await tx.audit.listNewest(1))[0]?.subjectUid, uid);
    });
  });

  async function newest() {
    const [row] = await p.store.read((tx) => tx.audit.listNewest(1));
    return row && { ...row };
  }

  async function auditCount(): Promise<number> {
    return (await p.store.read((tx) => tx.audit.listNewest(10_000))).length;
  }
});
