// The pipeline on a real store: what it does in which order, and what of it
// remains when something fails.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { create, type DescService, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import type { Authenticate } from "../../src/auth/authenticate.js";
import { bitOf } from "../../src/auth/authorize.js";
import { capabilitySetOf } from "../../src/kernel/capability-set.js";
import { failedPrecondition, notFound, unauthenticated } from "../../src/kernel/errors.js";
import type { Principal } from "../../src/kernel/principal.js";
import { Call, type Inbound, MAX_CALL_MS } from "../../src/rpc/call.js";
import { createInvoke, type Invoke } from "../../src/rpc/invoke.js";
import { createMethodTable, type Handler, type UnaryEntry } from "../../src/rpc/method-table.js";
import { openSqlite } from "../../src/store/open-sqlite.js";
import type { Store } from "../../src/store/port.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { declareService } from "./declare.js";

const nowMs = 1_800_000_000_000;
const [root, foreign] = [rootUid(1), rootUid(2)];
const group = childUid(root, 1);
const [member, stranger] = [rootUid(10), rootUid(11)];
const role = rootUid(20);

const guarded = (...capabilities: Capability[]) => ({ mode: { case: "enabled", value: { capabilities } } }) as const;
const fields = { parent: { scope: true }, name: { required: true } };
const desc: DescService = declareService({
  methods: {
    Make: { iam: guarded(Capability.CAP_IAM_GROUPS_CREATE), fields, event: "test.thing.made.v1" },
    Look: { iam: guarded(Capability.CAP_IAM_GROUPS_LIST), fields, read: true },
    Any: { iam: { mode: { case: "enabled", value: { unscoped: true } } }, fields: { name: {} } },
    Open: { iam: { mode: { case: "disabled", value: {} } }, fields: { uid: {} } },
  },
});

describe("invoke", () => {
  let store: Store;
  let invoke: Invoke;
  let now: number;
  let handler: Handler;
  let handled: number;
  let internal: { error: ConnectError; call: Call }[];
  let authenticate: Authenticate;
  const entries = new Map<string, UnaryEntry>();

  before(async () => {
    store = openSqlite({ directory: tempDir(), clock: () => now });
    const answer: Handler = (request: never, call: Call) => {
      handled++;
      return (handler as UnaryEntry["handler"])(request as Message, call);
    };
    for (const entry of createMethodTable([
      { desc, handlers: { make: answer, look: answer, any: answer, open: answer } },
    ]).values()) {
      assert.ok(entry.kind === "unary");
      entries.set(entry.desc.name, entry);
    }
    invoke = createInvoke({
      store,
      authenticate: (authorization) => authenticate(authorization),
      clock: () => now,
      errorDomain: "iam.test",
      onInternalError: (error, call) => internal.push({ error, call }),
    });
    now = nowMs;
    await store.write(async (tx) => {
      for (const uid of [root, group, foreign]) await tx.groups.insert(groupRow(uid));
      for (const uid of [member, stranger]) await tx.identities.insert(identityRow(uid));
      const capabilities = capabilitySetOf(
        [Capability.CAP_IAM_GROUPS_CREATE, Capability.CAP_IAM_GROUPS_LIST].map(bitOf),
      );
      await tx.roles.insert(roleRow(role, { capabilities }));
      await tx.roleBindings.insert(bindingRow(childUid(root, 9), member, role));
    });
  });
  after(() => store.close());

  beforeEach(() => {
    now = nowMs;
    handler = () => ({});
    handled = 0;
    internal = [];
    authenticate = (authorization) => {
      if (authorization === undefined) throw unauthenticated();
      return principal(authorization);
    };
  });

  function entryOf(name: string): UnaryEntry {
    const entry = entries.get(name);
    assert.ok(entry);
    return entry;
  }

  function start(name: string, request: Record<string, unknown>, inbound: Partial<InboundFacts> = {}) {
    const entry = entryOf(name);
    const call = new Call(inboundOf(inbound), entry.desc, now);
    return { call, answer: invoke(entry, call, create(entry.desc.input, request)) };
  }

  async function codeOf(answer: Promise<object>): Promise<ConnectError> {
    const error = await answer.then(
      () => assert.fail("should have been refused"),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ConnectError);
    assert.deepEqual(
      error.findDetails(ErrorInfoSchema).map(({ domain }) => domain),
      ["iam.test"],
    );
    return error;
  }

  const good = { parent: group, name: "n" };
  // Each row breaks one thing more than the one after it: the first in the order of the pipeline is answered.
  const order: readonly { request: Record<string, unknown>; by?: string; code?: Code; text?: string; reason: string }[] = [
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
      const { answer } = start("Make", request, by === undefined ? {} : { authorization: by });
      if (code === undefined) {
        assert.deepEqual(await answer, {});
        assert.equal(handled, 1);
        return;
      }
      const error = await codeOf(answer);
      assert.equal(error.code, code);
      assert.equal(error.rawMessage, text);
      assert.equal(handled, 0, "the handler was not reached");
    });
  }

  test("a method open to everybody does not look at the token", async () => {
    authenticate = () => assert.fail("authenticated");
    handler = (_request: never, call: Call) => {
      assert.throws(() => call.caller, { message: "Open has no authenticated caller" });
      return {};
    };
    assert.deepEqual(await start("Open", {}, { authorization: "garbage" }).answer, {});
  });

  test("the transaction and the caller are there while the handler runs", async () => {
    handler = async (_request: never, { tx, caller }: Call) => ({
      uid: (await tx.groups.get(group))?.uid,
      caller: caller.uid,
    });
    assert.deepEqual(await start("Make", good, { authorization: member }).answer, { uid: group, caller: member });
  });

  test("the transaction is dead once the handler has answered", async () => {
    const { answer, call } = start("Make", good, { authorization: member });
    await answer;
    assert.throws(() => call.tx.groups.get(group), /after its unit of work had settled/);
  });

  test("before the handler runs there is no transaction", () => {
    const call = new Call(inboundOf({}), entryOf("Make").desc, now);
    assert.throws(() => call.tx, { message: "call.tx is only there while the handler runs" });
  });

  test("a write leaves one audit row that says who did what", async () => {
    const made = childUid(group, 0xabc);
    handler = () => ({ uid: made });
    now = nowMs + 5;
    const facts = { authorization: member, requestId: "req-1", remoteAddress: "192.0.2.7" };
    await start("Make", good, facts).answer;
    assert.deepEqual(await newest(), {
      rootUid: root,
      timeMs: nowMs + 5,
      type: "test.thing.made.v1",
      method: "/arbor.test.rpc.Service/Make",
      subjectUid: made,
      actorUid: member,
      tokenId: "token-1",
      requestId: "req-1",
      remoteAddress: "192.0.2.7",
    });
  });

  const subjects: readonly { method: string; request: Record<string, unknown>; handler: Handler; subject: string; root: string; reason: string }[] = [
    {
      method: "Make",
      request: good,
      handler: () => ({ uid: childUid(group, 1) }),
      subject: childUid(group, 1),
      root,
      reason: "the resource the answer describes",
    },
    { method: "Make", request: good, handler: () => ({}), subject: group, root, reason: "else the scope of the request" },
    { method: "Make", request: good, handler: () => ({ uid: "" }), subject: group, root, reason: "an empty uid is none" },
    { method: "Any", request: {}, handler: () => ({}), subject: "", root: "", reason: "else nothing" },
    {
      method: "Any",
      request: {},
      handler: (_request: never, call: Call) => {
        call.subjectUid = childUid(foreign, 3);
        return { uid: group };
      },
      subject: childUid(foreign, 3),
      root: foreign,
      reason: "before all what the handler says",
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

  for (const { reason, ...row } of subjects) {
    test(`the subject of an audit row: ${reason}`, async () => {
      handler = row.handler;
      await start(row.method, row.request, { authorization: member }).answer;
      const audited = await newest();
      assert.equal(audited?.subjectUid, row.subject);
      assert.equal(audited?.rootUid, row.root);
      assert.equal(audited?.actorUid, row.method === "Open" ? "" : member);
    });
  }

  test("an x-request-id that is not sane is replaced", async () => {
    await start("Make", good, { authorization: member, requestId: 'a"b\nc' }).answer;
    assert.match((await newest())?.requestId ?? "", /^[0-9a-f]{32}$/);
  });

  test("a read leaves no audit row", async () => {
    const rows = await auditCount();
    await start("Look", good, { authorization: member }).answer;
    assert.equal(await auditCount(), rows);
  });

  const failures: readonly { thrown: unknown; code: Code; reason: string }[] = [
    { thrown: failedPrecondition("T", "no"), code: Code.FailedPrecondition, reason: "refuses" },
    { thrown: new TypeError("secret"), code: Code.Internal, reason: "has a defect" },
  ];
  for (const { thrown, code, reason } of failures) {
    test(`when the handler ${reason}, neither its rows nor an audit row remain`, async () => {
      const rows = await auditCount();
      const uid = childUid(group, 0xdead);
      handler = async (_request: never, { tx }: Call) => {
        await tx.groups.insert(groupRow(uid));
        throw thrown;
      };
      assert.equal((await codeOf(start("Make", good, { authorization: member }).answer)).code, code);
      assert.equal(await auditCount(), rows);
      assert.equal(await store.read((tx) => tx.groups.get(uid)), undefined);
    });
  }

  test("the handler's rows and the audit row are there together", async () => {
    const uid = childUid(group, 0xbeef);
    handler = async (_request: never, { tx }: Call) => {
      await tx.groups.insert(groupRow(uid));
      return { uid };
    };
    await start("Make", good, { authorization: member }).answer;
    await store.read(async (tx) => {
      assert.ok(await tx.groups.get(uid));
      assert.equal((await tx.audit.newest(1))[0]?.subjectUid, uid);
    });
  });

  const internalErrors: readonly { thrown: unknown; reason: string }[] = [
    { thrown: new TypeError("SELECT secret FROM keys at /srv/arbor/x.ts"), reason: "a defect" },
    { thrown: Object.assign(new Error("UNIQUE constraint failed"), { code: "SQLITE_CONSTRAINT_PRIMARYKEY" }), reason: "a driver" },
    { thrown: "secret", reason: "something that is no error" },
  ];

  for (const { thrown, reason } of internalErrors) {
    test(`an internal error says nothing and is told to the operator: ${reason}`, async () => {
      handler = () => {
        throw thrown;
      };
      const { answer, call } = start("Make", good, { authorization: member });
      const error = await codeOf(answer);
      assert.equal(error.code, Code.Internal);
      assert.equal(error.rawMessage, "Internal: the service failed to handle the call");
      assert.deepEqual(
        internal.map(({ error: { cause }, call: of }) => [cause, of]),
        [[thrown, call]],
      );
    });
  }

  test("an error of the caller's is not told to the operator", async () => {
    await codeOf(start("Make", { parent: foreign }, { authorization: member }).answer);
    assert.deepEqual(internal, []);
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
      handler = () => {
        throw notFound({ noun: "thing", type: "test/Thing" }, "x");
      };
      const error = await codeOf(start("Make", { parent: scope, name: "n" }, { authorization: by }).answer);
      assert.equal(error.code, code);
      assert.equal(error.rawMessage, text);
    });
  }

  test("rights are read with every call", async () => {
    const later = { authorization: stranger };
    assert.equal((await codeOf(start("Make", good, later).answer)).code, Code.PermissionDenied);
    const binding = bindingRow(childUid(group, 0x77), stranger, role);
    await store.write((tx) => tx.roleBindings.insert(binding));
    await start("Make", good, later).answer;
    await store.write((tx) => tx.roleBindings.delete(binding.uid));
    assert.equal((await codeOf(start("Make", good, later).answer)).code, Code.PermissionDenied);
    await store.write((tx) => tx.identities.delete(stranger));
    assert.equal((await codeOf(start("Make", good, later).answer)).code, Code.Unauthenticated);
  });

  const deadlines: readonly { timeoutMs?: number; elapsedMs: number; passed: boolean; reason: string }[] = [
    { timeoutMs: 100, elapsedMs: 0, passed: false, reason: "at once" },
    { timeoutMs: 100, elapsedMs: 100, passed: false, reason: "at the last moment" },
    { timeoutMs: 100, elapsedMs: 101, passed: true, reason: "a moment too late" },
    { timeoutMs: 0, elapsedMs: 1, passed: true, reason: "no time at all" },
    { elapsedMs: MAX_CALL_MS, passed: false, reason: "within 30 s when the caller sets none" },
    { elapsedMs: MAX_CALL_MS + 1, passed: true, reason: "after 30 s when the caller sets none" },
    { timeoutMs: 3_600_000, elapsedMs: MAX_CALL_MS + 1, passed: true, reason: "after 30 s whatever the caller allows" },
  ];

  for (const { timeoutMs, elapsedMs, passed, reason } of deadlines) {
    for (const method of ["Make", "Look"]) {
      test(`deadline of ${method}: ${reason}`, async () => {
        authenticate = async (authorization) => {
          now += elapsedMs;
          return principal(authorization ?? "");
        };
        const facts = { authorization: member, ...(timeoutMs !== undefined && { timeoutMs }) };
        const { answer } = start(method, good, facts);
        if (!passed) return void (await answer);
        const error = await codeOf(answer);
        assert.equal(error.code, Code.DeadlineExceeded);
        assert.equal(error.rawMessage, "Deadline exceeded: the call took longer than allowed");
        assert.equal(handled, 0);
        assert.deepEqual(internal, []);
      });
    }
  }

  test("a thousand failing calls at once: none sees another's marker", async () => {
    handler = (request: never) => {
      throw failedPrecondition("T", `marker ${(request as { name: string }).name}`);
    };
    await Promise.all(
      Array.from({ length: 1_000 }, async (_, i) => {
        const method = i % 2 === 0 ? "Make" : "Look";
        const error = await codeOf(start(method, { parent: group, name: `<${i}>` }, { authorization: member }).answer);
        assert.equal(error.rawMessage, `Precondition failed: marker <${i}>`);
      }),
    );
  });

  async function newest() {
    const [row] = await store.read((tx) => tx.audit.newest(1));
    return row && { ...row };
  }

  async function auditCount(): Promise<number> {
    return (await store.read((tx) => tx.audit.newest(10_000))).length;
  }
});

function principal(identityUid: string): Principal {
  return { identityUid, tokenId: "token-1", issuedAt: nowMs / 1000, expiresAt: nowMs / 1000 + 3600 };
}

interface InboundFacts {
  readonly authorization: string;
  readonly requestId: string;
  readonly remoteAddress: string;
  readonly timeoutMs: number;
}

function inboundOf({ authorization, requestId, remoteAddress, timeoutMs }: Partial<InboundFacts>): Inbound {
  const headers: Record<string, string | undefined> = { authorization, "x-request-id": requestId };
  return {
    protocol: "rest",
    method: "POST",
    url: "/",
    timeoutMs,
    remoteAddress,
    header: (name) => headers[name],
    headers: () => new Headers(),
  };
}
