// The pipeline and its handlers on a store, without sockets or tokens: for tests
// that need many calls, or the same calls on several databases.
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { definitions } from "../../src/app/definitions.js";
import { createPlatformServices } from "../../src/app/services.js";
import { seedRoles } from "../../src/iam/roles/builtin-roles.js";
import type { Ids } from "../../src/kernel/ids.js";
import { createPageTokens } from "../../src/kernel/page-token.js";
import type { Principal } from "../../src/kernel/principal.js";
import { defaultLimits, type QuotaLimits } from "../../src/kernel/quotas.js";
import { type Inbound, UnaryCall } from "../../src/pipeline/call.js";
import { createInvoke } from "../../src/pipeline/invoke.js";
import { createMethodTable, type RoomCheck } from "../../src/pipeline/method-table.js";
import { buildRoomChecks, createQuotas } from "../../src/pipeline/resource/quota.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";

/** Calls a method by its RPC path as an identity; rejects with a ConnectError. */
export type InProcess = (path: string, identity: string, request: object) => Promise<object>;

/** Makes the pipeline. The clock must not stand still for page tokens to age; ids are the test's. */
export async function inProcess(
  store: Store,
  ids: Ids,
  clock: () => number,
  limits: QuotaLimits = defaultLimits,
  changeCheck: (check: RoomCheck) => RoomCheck = (check) => check,
): Promise<InProcess> {
  const quotas = createQuotas(limits);
  const checkOf = buildRoomChecks(definitions, quotas);
  await store.write((tx) => seedRoles(tx, 1_000));
  const tokens = createPageTokens(() => [{ id: "00".repeat(8), secret: Buffer.alloc(32, 7) }]);
  const seal = async (_: Tx, secret: Buffer, context: string) => `sealed ${context} ${secret.toString("hex")}`;
  const methods = createMethodTable(
    createPlatformServices({
      ...{
        tokens,
        ids,
        seal,
        rootCreation: "users",
        trustedIssuers: [],
        baseUrl: "https://iam.example",
        store,
        limits,
        quotas,
      },
      registry: undefined,
    }),
    (method) => {
      const check = checkOf(method);
      return check && changeCheck(check);
    },
  );
  const invoke = createInvoke({
    store,
    clock,
    errorDomain: "test",
    onInternalError: (error) => {
      throw error.cause;
    },
  });
  return async (path, identity, request) => {
    const entry = methods.get(path);
    if (entry === undefined) throw new TypeError(`there is no method ${path}`);
    const call = new UnaryCall(inboundOf(identity), entry.desc as DescMethod, clock());
    return invoke(entry as never, call, principalOf(identity), create(entry.desc.input, request as never) as Message);
  };
}

/** The caller of a call with the token of an identity. */
export function principalOf(identityUid: string): Principal {
  return { identityUid, tokenId: "token", issuedAt: 0, expiresAt: 4_000_000_000 };
}

/** A request as a front end would hand it over, with the uid of an identity for a token. */
export function inboundOf(identity: string): Inbound {
  return {
    protocol: "grpc",
    fieldSpelling: "json",
    method: "POST",
    url: "/",
    requestId: "request",
    header: (name) => (name === "authorization" ? identity : undefined),
    headers: () => new Headers(),
  };
}
