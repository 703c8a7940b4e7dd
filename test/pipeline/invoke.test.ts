// What the pipeline does in which order, and what callers learn of it.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { failedPrecondition, notFound } from "../../src/kernel/errors.js";
import { MAX_CALL_MS, UnaryCall } from "../../src/pipeline/call.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { bindingRow, childUid, rootUid } from "../support/rows.js";
import {
  errorOf,
  foreign,
  group,
  inboundOf,
  member,
  type Pipeline,
  principal,
  role,
  root,
  startPipeline,
  stranger,
} from "./pipeline.js";

describe("invoke", () => {
  let p: Pipeline;
  before(async () => {
    p = await startPipeline();
  });
  beforeEach(() => p.reset());
  after(() => p.store.close());

  const good = { parent: group, name: "n" };
  // Each row breaks one thing more than the one after it: the first in the order of the pipeline is answered.
  const order: readonly {
    request: Record<string, unknown>;
    by?: string;
    code?: Code;
    text?: string;
    reason: string;
  }[] = [
    {
      request: { parent: foreign, name: "" },
      code: Code.Unauthenticated,
      text: "Unauthenticated: authorization: a valid bearer token is required",
      reason: "no token, no right, nothing valid",
    },
    {
      request: { parent: foreign, name: "" },
      by: rootUid(99),
      code: Code.Unauthenticated,
      text: "Unauthenticated: authorization: a valid bearer token is required",
      reason: "an identity that is gone",
    },
    {
      request: { parent: "x", name: "" },
      by: member,
      code: Code.InvalidArgument,
      text: "Invalid argument: parent: parent must be a uid, such as the service assigns",
      reason: "a scope that names no place at all",
    },
    {
      request: { parent: foreign, name: "" },
      by: member,
      code: Code.PermissionDenied,
      text: `Permission denied: groups.create at ${foreign} (or it might not exist)`,
      reason: "no right, nothing valid",
    },
    {
      request: { parent: group, name: "" },
      by: member,
      code: Code.InvalidArgument,
      text: "Invalid argument: name: name is required",
      reason: "nothing valid",
    },
    { request: good, by: member, reason: "all in order" },
  ];

  for (const { request, by, code, text, reason } of order) {
    test(`order: ${reason}`, async () => {
      const { answer } = p.start("Make", request, by === undefined ? {} : { authorization: by });
      if (code === undefined) {
        assert.deepEqual(await answer, {});
        assert.equal(p.handled, 1);
        return;
      }
      const error = await errorOf(answer);
      assert.equal(error.code, code);
      assert.equal(error.rawMessage, text);
      assert.equal(p.handled, 0, "the handler was not reached");
    });
  }

  test("a method open to everybody does not look at the token", async () => {
    p.authenticate = () => assert.fail("authenticated");
    p.handler = (_request: never, call: UnaryCall) => {
      assert.throws(() => call.caller, { message: "Open has no authenticated caller" });
      return {};
    };
    assert.deepEqual(await p.start("Open", {}, { authorization: "garbage" }).answer, {});
  });

  test("the transaction and the caller are there while the handler runs", async () => {
    p.handler = async (_request: never, { tx, caller }: UnaryCall) => ({
      uid: (await tx.table(groupKind).find(group))?.uid,
      caller: caller.uid,
    });
    assert.deepEqual(await p.start("Make", good, { authorization: member }).answer, { uid: group, caller: member });
  });

  test("the transaction is dead once the handler has answered", async () => {
    const { answer, call } = p.start("Make", good, { authorization: member });
    await answer;
    assert.throws(() => call.tx.table(groupKind).find(group), /after its unit of work had settled/);
  });

  test("before the handler runs there is no transaction", () => {
    const call = new UnaryCall(inboundOf({}), p.entryOf("Make").desc, p.now);
    assert.throws(() => call.tx, { message: "call.tx is only there while the handler runs" });
  });

  const internalErrors: readonly { thrown: unknown; reason: string }[] = [
    { thrown: new TypeError("SELECT secret FROM keys at /srv/arbor/x.ts"), reason: "a defect" },
    {
      thrown: Object.assign(new Error("UNIQUE constraint failed"), { code: "SQLITE_CONSTRAINT_PRIMARYKEY" }),
      reason: "a driver",
    },
    { thrown: "secret", reason: "something that is no error" },
  ];

  for (const { thrown, reason } of internalErrors) {
    test(`an internal error says nothing and is told to the operator: ${reason}`, async () => {
      p.handler = () => {
        throw thrown;
      };
      const { answer, call } = p.start("Make", good, { authorization: member });
      const error = await errorOf(answer);
      assert.equal(error.code, Code.Internal);
      assert.equal(error.rawMessage, "Internal: the service failed to handle the call");
      assert.deepEqual(
        p.internal.map(({ error: { cause }, call: of }) => [cause, of]),
        [[thrown, call]],
      );
    });
  }

  test("an error of the caller's is not told to the operator", async () => {
    await errorOf(p.start("Make", { parent: foreign }, { authorization: member }).answer);
    assert.deepEqual(p.internal, []);
  });

  const hidden: readonly { scope: string; by: string; code: Code; text: string; reason: string }[] = [
    {
      scope: group,
      by: member,
      code: Code.NotFound,
      text: "Not found: thing: there is no thing x",
      reason: "the caller reads the parent",
    },
    {
      scope: root,
      by: member,
      code: Code.PermissionDenied,
      text: `Permission denied: groups.create at ${root} (or it might not exist)`,
      reason: "there is no parent",
    },
  ];

  for (const { scope, by, code, text, reason } of hidden) {
    test(`a handler that finds nothing: ${reason}`, async () => {
      p.handler = () => {
        throw notFound({ displayName: "thing", type: "test/Thing" }, "x");
      };
      const error = await errorOf(p.start("Make", { parent: scope, name: "n" }, { authorization: by }).answer);
      assert.equal(error.code, code);
      assert.equal(error.rawMessage, text);
    });
    test(`a preparation that finds nothing: ${reason}`, async () => {
      p.prepare = async () => {
        throw notFound({ displayName: "thing", type: "test/Thing" }, "x");
      };
      const error = await errorOf(p.start("Prepared", { parent: scope, name: "n" }, { authorization: by }).answer);
      assert.equal(error.rawMessage, text);
      assert.equal(p.handled, 0);
    });
  }

  test("rights are read with every call", async () => {
    const later = { authorization: stranger };
    assert.equal((await errorOf(p.start("Make", good, later).answer)).code, Code.PermissionDenied);
    const binding = bindingRow(childUid(group, 0x77), stranger, role);
    await p.store.write((tx) => tx.table(roleBindingKind).insert(binding));
    await p.start("Make", good, later).answer;
    await p.store.write((tx) => tx.table(roleBindingKind).delete(binding.uid));
    assert.equal((await errorOf(p.start("Make", good, later).answer)).code, Code.PermissionDenied);
    await p.store.write((tx) => tx.table(identityKind).delete(stranger));
    assert.equal((await errorOf(p.start("Make", good, later).answer)).code, Code.Unauthenticated);
  });

  const deadlines: readonly { timeoutMs?: number; elapsedMs: number; passed: boolean; reason: string }[] = [
    { timeoutMs: 100, elapsedMs: 0, passed: false, reason: "at once" },
    { timeoutMs: 20_000, elapsedMs: 19_000, passed: false, reason: "shortly before" },
    { timeoutMs: 20_000, elapsedMs: 20_000, passed: true, reason: "when the time is up" },
    { timeoutMs: 0, elapsedMs: 0, passed: true, reason: "no time at all" },
    { elapsedMs: MAX_CALL_MS - 1_000, passed: false, reason: "within 30 s when the caller sets none" },
    { elapsedMs: MAX_CALL_MS, passed: true, reason: "after 30 s when the caller sets none" },
    { timeoutMs: 3_600_000, elapsedMs: MAX_CALL_MS, passed: true, reason: "after 30 s whatever the caller allows" },
  ];

  for (const { timeoutMs, elapsedMs, passed, reason } of deadlines) {
    for (const method of ["Make", "Look"]) {
      test(`deadline of ${method}: ${reason}`, async () => {
        p.authenticate = async (authorization) => {
          p.now += elapsedMs;
          return principal(authorization ?? "");
        };
        const facts = { authorization: member, ...(timeoutMs !== undefined && { timeoutMs }) };
        const { answer } = p.start(method, good, facts);
        if (!passed) return void (await answer);
        const error = await errorOf(answer);
        assert.equal(error.code, Code.DeadlineExceeded);
        assert.equal(error.rawMessage, "Deadline exceeded: the call took longer than allowed");
        assert.equal(p.handled, 0);
        assert.deepEqual(p.internal, []);
      });
    }
  }

  const busy = "Unavailable: the call waited too long for the database, try again";

  test("a write that waited too long for the database is refused before its handler, and a read is not", async () => {
    const turn = { key: "192.0.2.1", maxWaitMs: 0 };
    const facts = { authorization: member, turn };
    const write = errorOf(p.start("Make", good, facts).answer);
    const read = p.start("Look", good, facts).answer;
    assert.equal((await write).rawMessage, busy);
    assert.deepEqual(await read, {});
    assert.equal(p.handled, 1);
    const inTime = { authorization: member, turn: { ...turn, maxWaitMs: 60_000 } };
    await p.start("Make", good, inTime).answer;
  });

  test("when ten thousand wait for the database, the newest of the longest queue is refused", async () => {
    const wait = (key: string) => p.store.write(async () => undefined, { key });
    const waiting = Array.from({ length: 10_000 }, () => wait("192.0.2.1"));
    const [outcomes] = await Promise.all([Promise.allSettled(waiting), wait("192.0.2.2")]);
    const refused = outcomes.flatMap(({ status }, i) => (status === "rejected" ? [i] : []));
    assert.deepEqual(refused, [9_999]);
    await assert.rejects(waiting[9_999] as Promise<void>, { message: busy });
  });

  test("a thousand failing calls at once: none sees another's marker", async () => {
    p.handler = (request: never) => {
      throw failedPrecondition("T", `marker ${(request as { name: string }).name}`);
    };
    await Promise.all(
      Array.from({ length: 1_000 }, async (_, i) => {
        const method = i % 2 === 0 ? "Make" : "Look";
        const error = await errorOf(
          p.start(method, { parent: group, name: `<${i}>` }, { authorization: member }).answer,
        );
        assert.equal(error.rawMessage, `Precondition failed: marker <${i}>`);
      }),
    );
  });
});
