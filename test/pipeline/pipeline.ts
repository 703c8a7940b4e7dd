// The pipeline on a real store, with methods, a caller and a clock of the tests' own.
import assert from "node:assert/strict";
import { create, type Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { toCapabilitySet } from "../../src/kernel/capability-set.js";
import { connectErrorFrom, unauthenticated } from "../../src/kernel/errors.js";
import type { Principal } from "../../src/kernel/principal.js";
import { type Authenticate, createAuthenticateCaller } from "../../src/pipeline/auth/authenticate.js";
import { bitOf } from "../../src/pipeline/auth/authorize.js";
import { type CallContext, type Inbound, UnaryCall } from "../../src/pipeline/call.js";
import type { Handler } from "../../src/pipeline/handlers.js";
import { createInvoke } from "../../src/pipeline/invoke.js";
import { createMethodTable, type UnaryEntry } from "../../src/pipeline/method-table.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { newDataDir } from "../support/data-dir.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { declareService } from "./declare.js";

/** When every test begins, in epoch milliseconds. */
export const nowMs = 1_800_000_000_000;
/** Groups: `group` is a child of `root`, `foreign` is another organisation. */
export const [root, foreign] = [rootUid(1), rootUid(2)];
export const group = childUid(root, 1);
/** Identities: the member holds the role at the root, the stranger nothing anywhere. */
export const [member, stranger] = [rootUid(10), rootUid(11)];
export const role = rootUid(20);

const guardWith = (...capabilities: Capability[]) => ({ mode: { case: "enabled", value: { capabilities } } }) as const;
const fields = { parent: { scope: true }, name: { required: true } };
const desc = declareService({
  methods: {
    Make: { iam: guardWith(Capability.CAP_IAM_GROUPS_CREATE), fields, event: "test.thing.made.v1" },
    Prepared: { iam: guardWith(Capability.CAP_IAM_GROUPS_CREATE), fields },
    Look: { iam: guardWith(Capability.CAP_IAM_GROUPS_LIST), fields, read: true },
    Any: { iam: { mode: { case: "enabled", value: { unscoped: true } } }, fields: { name: {} } },
    Open: { iam: { mode: { case: "disabled", value: {} } }, fields: { uid: {} } },
  },
});

/** What a front end would know of a request. */
export interface InboundFacts {
  readonly authorization: string;
  readonly requestId: string;
  readonly remoteAddress: string;
  readonly timeoutMs: number;
  readonly turn: Inbound["turn"];
}

/** The pipeline, and what tests set and look at. */
export interface Pipeline {
  readonly store: Store;
  /** The time of the service, in epoch milliseconds. */
  now: number;
  /** Answers every method. */
  handler: Handler;
  /** Runs before the transaction of `Prepared`. */
  prepare: () => Promise<unknown>;
  /** How often it was reached. */
  handled: number;
  /** Whether methods that write change a row before the handler runs. */
  changes: boolean;
  /** What the operator was told of. */
  internal: { readonly error: ConnectError; readonly call: CallContext }[];
  /** By default the header names the identity. */
  authenticate: Authenticate;
  /** Everything but the store as it was. */
  reset(): void;
  entryOf(name: string): UnaryEntry;
  /** Begins a call of one of the methods. */
  start(
    name: string,
    request: Record<string, unknown>,
    inbound?: Partial<InboundFacts>,
  ): { readonly call: UnaryCall; readonly answer: Promise<object> };
}

/** Opens a store with the groups and identities above and sets the pipeline up on it. */
export async function startPipeline(): Promise<Pipeline> {
  const store = openSqlite({ directory: newDataDir(), clock: () => pipeline.now });
  const authenticateCaller = createAuthenticateCaller((authorization) => pipeline.authenticate(authorization));
  // As a front end does before it invokes the method.
  const authenticate = async (entry: UnaryEntry, call: UnaryCall) => {
    try {
      return await authenticateCaller(entry, call.inbound.header("authorization"));
    } catch (error) {
      throw connectErrorFrom(error, "iam.test");
    }
  };
  const invoke = createInvoke({
    store,
    clock: () => pipeline.now,
    errorDomain: "iam.test",
    onInternalError: (error, call) => pipeline.internal.push({ error, call }),
  });
  const response: Handler = (request: never, call: UnaryCall) => {
    pipeline.handled++;
    return (pipeline.handler as UnaryEntry["handler"])(request as Message, call);
  };
  // A call that changes nothing leaves no audit row.
  const change: Handler = async (request: never, call: UnaryCall) => {
    if (pipeline.changes) await call.tx.settings.put("test", call.requestId);
    return (response as UnaryEntry["handler"])(request as Message, call);
  };
  const prepared: Handler = { prepare: () => pipeline.prepare(), handle: change };
  const handlers = { make: change, prepared, look: response, any: change, open: change };
  const table = createMethodTable([{ desc, handlers, settings: { make: { body: "none" } } }]);
  const initial = () => ({
    now: nowMs,
    handler: () => ({}),
    prepare: async () => undefined,
    handled: 0,
    changes: true,
    internal: [],
    authenticate: (authorization: string | undefined) => {
      if (authorization === undefined) throw unauthenticated();
      return principal(authorization);
    },
  });
  const pipeline: Pipeline = {
    store,
    ...initial(),
    reset: () => void Object.assign(pipeline, initial()),
    entryOf(name) {
      const entry = table.get(`/${desc.typeName}/${name}`);
      assert.ok(entry?.kind === "unary");
      return entry;
    },
    start(name, request, inbound = {}) {
      const entry = pipeline.entryOf(name);
      const call = new UnaryCall(inboundOf(inbound), entry.desc, pipeline.now);
      const message = create(entry.desc.input, request);
      const response = async () => invoke(entry, call, await authenticate(entry, call), message);
      return { call, answer: response() };
    },
  };
  await store.write(async (tx) => {
    for (const uid of [root, group, foreign]) await tx.table(groupKind).insert(groupRow(uid));
    for (const uid of [member, stranger]) await tx.table(identityKind).insert(identityRow(uid));
    const bits = [Capability.CAP_IAM_GROUPS_CREATE, Capability.CAP_IAM_GROUPS_LIST].map(bitOf);
    await tx.table(roleKind).insert(roleRow(role, { capabilities: toCapabilitySet(bits) }));
    await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 9), member, role));
  });
  return pipeline;
}

/** The error a call ended with, which carries the domain whatever went wrong. */
export async function errorOf(response: Promise<object>): Promise<ConnectError> {
  const error = await response.then(
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

/** Who a token of `identityUid` would be. */
export function principal(identityUid: string): Principal {
  return { identityUid, tokenId: "token-1", issuedAt: nowMs / 1000, expiresAt: nowMs / 1000 + 3600 };
}

/** A request as a front end would hand it over. */
export function inboundOf({
  authorization,
  requestId,
  remoteAddress,
  timeoutMs,
  turn,
}: Partial<InboundFacts>): Inbound {
  return {
    protocol: "rest",
    fieldSpelling: "json",
    method: "POST",
    url: "/",
    timeoutMs,
    remoteAddress,
    turn,
    requestId: requestId ?? "request",
    header: (name) => (name === "authorization" ? authorization : undefined),
    headers: () => new Headers(),
  };
}
