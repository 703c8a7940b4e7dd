// The pipeline of streams on a real store: who may begin one, and every way in
// which one ends.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { create, type DescService } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { toCapabilitySet } from "../../src/kernel/capability-set.js";
import { failedPrecondition, notFound } from "../../src/kernel/errors.js";
import type { Principal } from "../../src/kernel/principal.js";
import { bitOf } from "../../src/pipeline/auth/authorize.js";
import { type Inbound, MAX_CALL_MS, StreamCall } from "../../src/pipeline/call.js";
import type { Handler } from "../../src/pipeline/handlers.js";
import { authorizeMounted } from "../../src/pipeline/invoke-mounted.js";
import { createInvokeStream, type InvokeStream } from "../../src/pipeline/invoke-stream.js";
import { createMethodTable, type StreamEntry } from "../../src/pipeline/method-table.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { declareService } from "./declare.js";

const [root, foreign] = [rootUid(1), rootUid(2)];
const group = childUid(root, 1);
const member = rootUid(10);
const role = rootUid(20);
const good = { parent: group, name: "n" };

const desc: DescService = declareService({
  methods: {
    Watch: {
      iam: { mode: { case: "enabled", value: { capabilities: [Capability.CAP_IAM_GROUPS_LIST] } } },
      fields: { parent: { scope: true }, name: { required: true } },
      streams: "answers",
    },
    Open: { iam: { mode: { case: "disabled", value: {} } }, streams: "answers" },
  },
});

interface Facts {
  readonly authorization?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

describe("invoke-stream", () => {
  let store: Store;
  let invokeStream: InvokeStream;
  let deps: Parameters<typeof createInvokeStream>[0];
  let handler: (request: never, call: StreamCall) => AsyncIterable<object>;
  let started: number;
  let released: number;
  let seenCall: StreamCall | undefined;
  let internal: ConnectError[];
  const entries = new Map<string, StreamEntry>();

  before(async () => {
    store = openSqlite({ directory: tempDir(), clock: Date.now });
    const response = (request: never, call: StreamCall) => {
      started++;
      seenCall = call;
      return handler(request, call);
    };
    for (const entry of createMethodTable([
      { desc, handlers: { watch: response as Handler, open: response as Handler } },
    ]).values()) {
      assert.ok(entry.kind === "server_streaming");
      entries.set(entry.desc.name, entry);
    }
    deps = { store, clock: Date.now, errorDomain: "iam.test", onInternalError: (error) => internal.push(error) };
    invokeStream = createInvokeStream(deps);
    await store.write(async (tx) => {
      for (const uid of [root, group, foreign]) await tx.table(groupKind).insert(groupRow(uid));
      await tx.table(identityKind).insert(identityRow(member));
      const capabilities = toCapabilitySet([bitOf(Capability.CAP_IAM_GROUPS_LIST)]);
      await tx.table(roleKind).insert(roleRow(role, { capabilities }));
      await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 9), member, role));
    });
  });
  after(() => store.close());

  beforeEach(() => {
    [started, released, internal, seenCall] = [0, 0, [], undefined];
    handler = count;
  });

  function start(request: Record<string, unknown> = good, facts: Facts = { authorization: member }, name = "Watch") {
    const entry = entries.get(name);
    assert.ok(entry);
    const call = new StreamCall(inboundOf(facts), entry.desc, Date.now());
    const { authorization } = facts;
    const principal = authorization === undefined ? undefined : principalOf(authorization);
    return invokeStream(entry, call, principal, create(entry.desc.input, request));
  }

  // Three answers, then its end.
  async function* count(): AsyncGenerator<object> {
    try {
      for (let n = 1; n <= 3; n++) yield { n };
    } finally {
      released++;
    }
  }

  // One response, then nothing until its call ends.
  async function* linger(_request: never, { signal }: StreamCall): AsyncGenerator<object> {
    try {
      yield { n: 1 };
      await new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    } finally {
      released++;
    }
  }

  async function* yieldOnce(): AsyncGenerator<object> {
    yield { n: 1 };
    await new Promise(() => {});
  }

  async function all(messages: AsyncIterable<object>): Promise<object[]> {
    const seen: object[] = [];
    for await (const message of messages) seen.push(message);
    return seen;
  }

  async function failure(messages: AsyncIterator<object>): Promise<ConnectError> {
    const error = await messages.next().then(
      () => assert.fail("should have failed"),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ConnectError);
    assert.equal(error.findDetails(ErrorInfoSchema)[0]?.domain, "iam.test");
    return error;
  }

  test("a mounted stream ends with the rights of its caller", async () => {
    const entry = entries.get("Watch");
    assert.ok(entry);
    const temporary = rootUid(11);
    await store.write(async (tx) => {
      await tx.table(identityKind).insert(identityRow(temporary));
      const endTimeMs = Date.now() + 60_000;
      await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 8), temporary, role, { endTimeMs }));
    });
    handler = linger;
    const mounted = { ...entry, mounted: { desc, registry: undefined } };
    // Its clock is ahead of that of the store, so that the test need not wait for as long.
    const clock = () => Date.now() + 57_000;
    const call = new StreamCall(inboundOf({ authorization: temporary }), entry.desc, clock());
    const messages = createInvokeStream({ ...deps, clock })(
      mounted,
      call,
      principalOf(temporary),
      create(entry.desc.input, good),
    );
    assert.deepEqual(await messages.next(), { done: false, value: { n: 1 } });
    assert.equal((await failure(messages)).code, Code.PermissionDenied);
    assert.equal(released, 1);
  });

  test("answers come as the handler makes them, and it is released", async () => {
    assert.deepEqual(await all(start()), [{ n: 1 }, { n: 2 }, { n: 3 }]);
    assert.equal(released, 1);
    assert.deepEqual(internal, []);
  });

  test("nothing runs before the first answer is asked for, and never more than one ahead", async () => {
    const messages = start();
    assert.equal(started, 0);
    assert.deepEqual(await messages.next(), { done: false, value: { n: 1 } });
    assert.equal(started, 1);
    await messages.return();
    assert.equal(released, 1);
  });

  const rejections: readonly { request?: object; facts?: Facts; code: Code; text: string; reason: string }[] = [
    {
      request: { parent: foreign },
      facts: {},
      code: Code.Unauthenticated,
      text: "Unauthenticated: authorization: a valid bearer token is required",
      reason: "without a token",
    },
    {
      request: { parent: foreign },
      code: Code.PermissionDenied,
      text: `Permission denied: groups.list at ${foreign} (or it might not exist)`,
      reason: "without the right",
    },
    {
      request: { parent: group },
      code: Code.InvalidArgument,
      text: "Invalid argument: name: name is required",
      reason: "without a required field",
    },
    {
      facts: { authorization: member, timeoutMs: -1 },
      code: Code.DeadlineExceeded,
      text: "Deadline exceeded: the call took longer than allowed",
      reason: "after its time",
    },
    {
      facts: { authorization: member, signal: AbortSignal.abort() },
      code: Code.Canceled,
      text: "the caller has gone",
      reason: "of a caller that has gone",
    },
  ];

  for (const { request = good, facts = { authorization: member }, code, text, reason } of rejections) {
    test(`no handler runs for a call ${reason}`, async () => {
      const error = await failure(start({ ...request }, facts));
      assert.deepEqual([error.code, error.rawMessage], [code, text]);
      assert.equal(started, 0);
      assert.deepEqual(internal, []);
    });
  }

  test("a method that is open to everybody has no caller", async () => {
    assert.equal((await all(start({}, {}, "Open"))).length, 3);
    assert.throws(() => seenCall?.caller, TypeError);
  });

  test("the handler knows its caller and has no transaction", async () => {
    await all(start());
    assert.equal(seenCall?.caller.uid, member);
    assert.ok(seenCall && !("tx" in seenCall));
  });

  test("what the handler does not find looks forbidden to those who may not read its parent", async () => {
    handler = () => {
      throw notFound({ displayName: "thing", type: "test/Thing" }, "x");
    };
    const hidden = await failure(start({ ...good, parent: root }));
    assert.equal(hidden.rawMessage, `Permission denied: groups.list at ${root} (or it might not exist)`);
    assert.equal((await failure(start())).code, Code.NotFound);
    assert.deepEqual(internal, []);
  });

  const failures: readonly { thrown: unknown; code: Code; told: boolean; reason: string }[] = [
    { thrown: failedPrecondition("T", "no"), code: Code.FailedPrecondition, told: false, reason: "an error of ours" },
    { thrown: new ConnectError("x", Code.DataLoss), code: Code.DataLoss, told: true, reason: "one of the library" },
    { thrown: new TypeError("secret"), code: Code.Internal, told: true, reason: "a defect" },
  ];

  for (const { thrown, code, told, reason } of failures) {
    test(`a stream that fails after its first answer: ${reason}`, async () => {
      handler = async function* () {
        yield { n: 1 };
        throw thrown;
      };
      const messages = start();
      await messages.next();
      const error = await failure(messages);
      assert.equal(error.code, code);
      assert.ok(!error.message.includes("secret"));
      assert.equal(internal.length, told ? 1 : 0);
      assert.deepEqual(await messages.next(), { done: true, value: undefined });
    });
  }

  const lifetimes: readonly { timeoutMs?: number; lastsMs: number }[] = [
    { timeoutMs: 3_600_000, lastsMs: 3_600_000 },
    { lastsMs: Number.POSITIVE_INFINITY },
    { timeoutMs: 99_999_999 * 3_600_000, lastsMs: 99_999_999 * 3_600_000 },
  ];

  for (const { timeoutMs, lastsMs } of lifetimes) {
    test(`a stream may last as long as its caller allows: ${timeoutMs ?? "no limit"}`, async () => {
      assert.equal((await all(start(good, { authorization: member, ...(timeoutMs && { timeoutMs }) }))).length, 3);
      assert.ok(seenCall);
      assert.equal(seenCall.deadlineMs - seenCall.startMs, lastsMs);
      assert.equal(seenCall.timeoutMs() === undefined, timeoutMs === undefined);
    });
  }

  for (const agoMs of [MAX_CALL_MS / 2, MAX_CALL_MS + 1]) {
    test(`whatever its caller allows, a stream is authorized within 30 s: after ${agoMs / 1000} s`, async () => {
      const entry = entries.get("Watch");
      assert.ok(entry);
      const request = create(entry.desc.input, good);
      const newCall = () => new StreamCall(inboundOf({ authorization: member }), entry.desc, Date.now() - agoMs);
      const deps = { store, clock: Date.now, errorDomain: "iam.test", onInternalError: assert.fail };
      const authorized = [
        all(invokeStream(entry, newCall(), principalOf(member), request)),
        authorizeMounted(deps, entry, newCall(), principalOf(member), request),
      ];
      for (const { status } of await Promise.allSettled(authorized)) {
        assert.equal(status, agoMs < MAX_CALL_MS ? "fulfilled" : "rejected");
      }
    });
  }

  for (const [name, made] of Object.entries({ linger, yieldOnce })) {
    test(`a handler that has nothing to say (${name}) is ended by the deadline`, async () => {
      handler = made;
      // Long enough for the first response on a busy machine.
      const messages = start(good, { authorization: member, timeoutMs: 500 });
      await messages.next();
      const error = await failure(messages);
      assert.equal(error.rawMessage, "Deadline exceeded: the call took longer than allowed");
      assert.equal(String(seenCall?.signal.reason), `ConnectError: [deadline_exceeded] ${error.rawMessage}`);
      assert.deepEqual(internal, []);
    });

    test(`a handler that has nothing to say (${name}) is ended when its caller goes`, async () => {
      handler = made;
      const gone = new AbortController();
      const messages = start(good, { authorization: member, signal: gone.signal });
      await messages.next();
      const pending = failure(messages);
      gone.abort();
      assert.equal((await pending).code, Code.Canceled);
      assert.ok(seenCall?.signal.aborted);
      assert.equal(released, name === "linger" ? 1 : 0);
      assert.deepEqual(internal, []);
    });
  }

  test("a handler is not asked for more once its caller has gone", async () => {
    let requests = 0;
    handler = async function* () {
      for (;;) yield { n: ++requests };
    };
    const gone = new AbortController();
    const messages = start(good, { authorization: member, signal: gone.signal });
    await messages.next();
    gone.abort();
    await failure(messages);
    assert.equal(requests, 1);
  });

  test("an error while a handler cleans up is told to the operator alone", async () => {
    handler = async function* () {
      try {
        yield { n: 1 };
      } finally {
        await Promise.reject(new TypeError("secret"));
      }
    };
    const messages = start();
    await messages.next();
    await messages.return();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(String(internal[0]?.cause), "TypeError: secret");
  });
});

function principalOf(identityUid: string): Principal {
  return { identityUid, issuedAt: 4_000_000_000, expiresAt: 5_000_000_000, tokenId: "t" };
}

function inboundOf({ authorization, timeoutMs, signal }: Facts): Inbound {
  return {
    protocol: "grpc",
    fieldSpelling: "json",
    method: "POST",
    url: "/",
    timeoutMs,
    requestId: "request",
    header: (name) => (name === "authorization" ? authorization : undefined),
    headers: () => new Headers(),
    ...(signal && { signal: () => signal }),
  };
}
