// What chance does not bring about: limits that are reached, a database that cannot be written, and the end of a service
// with streams that are open.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  create,
  type DescMethod,
  type Message,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { Health } from "#gen/health/v1/health_pb.js";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { CLIENT } from "../../issuer/sts/exchange-world.js";
import { encodeCall, type RpcForm, streamForms, unaryForms } from "../../support/rpc-forms.js";
import { blockOf, type Field } from "../wire/hpack.js";
import { FLAG, FRAME, frame, openSession, type RawSession } from "../wire/http2-session.js";
import type { WireRequest } from "./exchange.js";
import { pathOf } from "./services.js";
import { BASE_URL, type Side } from "./side.js";
import { type Contents, type Issuers, UNREACHABLE_ISSUER } from "./world.js";

/** One of the services, with what is in it. */
export interface Filled {
  readonly side: Side;
  readonly contents: Contents;
}

/** Sends requests to both services, and compares the responses. */
export interface Pair {
  readonly a: Filled;
  readonly b: Filled;
  readonly issuers: Issuers;
  /** @param apart whether the request has a connection of its own, so that others can be sent meanwhile */
  compare(build: (filled: Filled) => WireRequest, apart?: boolean): Promise<void>;
}

/** The limit of streams of an address. */
const STREAMS = 200;
/** The limit of wrong invite codes of an address, and more than it. */
const WRONG_CODES = 12;
const BOTH_MS = 60_000;

function callOf(form: RpcForm, http: 1 | 2, method: DescMethod, init: object, fields: readonly Field[]): WireRequest {
  const message: Message = create(method.input, init as MessageInitShape<DescMethod["input"]>);
  const bytes = Buffer.from(form.isJson ? toJsonString(method.input, message) : toBinary(method.input, message));
  const call = encodeCall(form, { messages: [bytes] });
  return {
    label: `${form.name}, ${method.methodKind}`,
    ...{ http, method: call.method, path: pathOf(method) + call.query, body: call.body, rpc: method },
    fields: [...call.fields, ...fields],
  };
}

function restOf(method: string, path: string, fields: readonly Field[], body?: object): WireRequest {
  const json: Field[] = body === undefined ? [] : [["content-type", "application/json"]];
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  return { label: "REST", http: 1, method, path, fields: [...json, ...fields], body: bytes };
}

const bearer = (token: string): Field => ["authorization", `Bearer ${token}`];
const from = (address: string): Field => ["x-forwarded-for", address];
const overEach = (forms: readonly RpcForm[]) => forms.flatMap((form) => form.http.map((http) => [form, http] as const));

/** An issuer that cannot be reached: UNAVAILABLE, with a time to retry. */
async function unreachableIssuer({ compare, issuers }: Pair): Promise<void> {
  const fields = [bearer(issuers.token({ iss: UNREACHABLE_ISSUER, sub: "unreachable" })), from("10.200.0.1")];
  const method = SecurityTokenService.method.exchange;
  for (const [form, http] of overEach(unaryForms.filter(({ isGet }) => !isGet)))
    await compare(({ contents }) =>
      callOf(form, http, method, { aud: [BASE_URL], identity: contents.unreachable }, fields),
    );
  for (const verb of ["GET", "POST"])
    await compare(({ contents }) =>
      restOf(verb, `/sts/exchange?aud=${BASE_URL}&identity=${contents.unreachable}`, fields),
    );
}

/** Too many wrong codes: RESOURCE_EXHAUSTED, with a time to retry. */
async function wrongCodes({ compare, issuers }: Pair): Promise<void> {
  const token = issuers.token({ sub: "late", aud: [CLIENT, BASE_URL], azp: CLIENT, email: "late@acme.example" });
  const fields = [bearer(token), from("10.200.0.2")];
  const wrongCode = ({ contents }: Filled) => {
    const code = JSON.parse(Buffer.from(contents.inviteCode, "base64url").toString()) as object;
    return Buffer.from(JSON.stringify({ ...code, sec: "0".repeat(32) })).toString("base64url");
  };
  const rest = (filled: Filled) => restOf("POST", "/auth/v1/register", fields, { code: wrongCode(filled) });
  for (let n = 0; n < WRONG_CODES; n++) await compare(rest);
  for (const [form, http] of overEach(unaryForms.filter(({ isGet }) => !isGet)))
    await compare((filled) => callOf(form, http, Auth.method.register, { code: wrongCode(filled) }, fields));
}

/** Requests that are rejected before they are complete: the response comes, and the stream is reset after it. */
async function openRequests({ compare }: Pair): Promise<void> {
  const { getGroup } = GroupsService.method;
  const init = { uid: "0".repeat(40) };
  const ways: readonly (readonly [DescMethod, Field[]])[] = [
    [getGroup, []],
    [getGroup, [bearer("x")]],
    [
      getGroup,
      [
        ["grpc-timeout", "soon"],
        ["connect-timeout-ms", "soon"],
      ],
    ],
    [
      getGroup,
      [
        ["grpc-encoding", "x"],
        ["content-encoding", "x"],
      ],
    ],
    [AuditService.method.tailEvents, []],
    [
      AuditService.method.tailEvents,
      [
        ["grpc-timeout", "soon"],
        ["connect-timeout-ms", "soon"],
      ],
    ],
    [
      Health.method.watch,
      [
        ["grpc-encoding", "x"],
        ["connect-content-encoding", "x"],
      ],
    ],
  ];
  for (const [method, fields] of ways) {
    const forms = method.methodKind === "unary" ? unaryForms.filter(({ isGet }) => !isGet) : streamForms;
    for (const form of forms) {
      const request = callOf(form, 2, method, method === getGroup ? init : {}, fields);
      await compare(() => ({ ...request, open: true }));
      await compare(() => ({ ...request, open: true, path: `${request.path}x` }));
    }
  }
  const rest: WireRequest = {
    ...restOf("POST", `/iam/v2/groups/${"0".repeat(40)}`, [], { name: "a" }),
    http: 2,
    open: true,
  };
  await compare(() => rest);
  await compare(() => ({ ...rest, path: "/no/such/path" }));
}

/** Too many streams of an address: RESOURCE_EXHAUSTED. */
async function manyStreams({ a, b, compare }: Pair): Promise<void> {
  const address = from("10.200.0.3");
  const sessions = await Promise.all([a, b].map(({ side }) => openWatches(side, address)));
  for (const [form, http] of overEach(streamForms))
    await compare(() => ({ ...callOf(form, http, Health.method.watch, {}, [address]), endless: true }));
  for (const session of sessions) session.destroy();
}

async function openWatches({ port }: Side, address: Field): Promise<RawSession> {
  const begun = new Set<number>();
  const session = openSession(port, { onData: (stream) => begun.add(stream) });
  const form = streamForms[0] as RpcForm;
  const { path, fields, body = Buffer.alloc(0) } = callOf(form, 2, Health.method.watch, {}, [address]);
  const pseudo: Field[] = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "arbor.example"],
  ];
  const block = blockOf([...pseudo, ...fields]);
  for (let n = 0; n < STREAMS; n++) {
    session.send(
      frame(FRAME.HEADERS, FLAG.END_HEADERS, 2 * n + 1, block),
      frame(FRAME.DATA, FLAG.END_STREAM, 2 * n + 1, body),
    );
  }
  while (begun.size < STREAMS && !session.isClosed()) await session.next(BOTH_MS);
  return session;
}

/** A database that another process holds: UNAVAILABLE for writes, with a time to retry. */
async function heldDatabase({ a, b, compare }: Pair): Promise<void> {
  const held = [a, b].map(({ side }) => {
    const file = readdirSync(side.data).find((name) => name.endsWith(".db"));
    if (file === undefined) throw new Error(`no database in ${side.data}`);
    const database = openDatabase(join(side.data, file), { timeout: BOTH_MS });
    database.exec("BEGIN IMMEDIATE");
    return database;
  });
  try {
    const init = ({ contents }: Filled) => ({ parent: contents.organisation, group: { name: "held" } });
    const fields = ({ contents }: Filled) => [bearer(contents.tokens.owner)];
    const { createGroup } = GroupsService.method;
    await Promise.all([
      ...overEach(unaryForms.filter(({ isGet }) => !isGet)).map(([form, http]) =>
        compare((filled) => callOf(form, http, createGroup, init(filled), fields(filled)), true),
      ),
      compare(
        (filled) =>
          restOf("POST", `/iam/v2beta1/groups/${filled.contents.organisation}`, fields(filled), { name: "held" }),
        true,
      ),
    ]);
  } finally {
    for (const database of held) database.close();
  }
}

/** Streams that are open while events occur and the services end. */
async function endedStreams({ a, b, compare }: Pair): Promise<void> {
  const open: Promise<void>[] = [];
  const fields = ({ contents }: Filled) => [bearer(contents.tokens.owner)];
  for (const [form, http] of overEach(streamForms)) {
    for (const method of [AuditService.method.tailEvents, EventsService.method.tail])
      open.push(
        compare((filled) => callOf(form, http, method, { scope: filled.contents.organisation }, fields(filled)), true),
      );
    open.push(compare((filled) => callOf(form, http, Health.method.watch, {}, fields(filled)), true));
  }
  for (const path of ["/audit/v1/events:tail", "/events/v1/events:tail"]) {
    for (const accept of ["*/*", "text/event-stream"])
      open.push(
        compare(
          (filled) =>
            restOf("GET", `${path}?scope=${filled.contents.organisation}`, [...fields(filled), ["accept", accept]]),
          true,
        ),
      );
  }
  await sleep(1_000);
  // The first of them that has an event says that the others have it as well.
  const seen = compare(
    (filled) => ({
      ...restOf("GET", `/events/v1/events:tail?scope=${filled.contents.organisation}`, fields(filled)),
      endless: true,
    }),
    true,
  );
  await sleep(1_000);
  await compare((filled) =>
    restOf("PATCH", `/iam/v2beta1/groups/${filled.contents.organisation}`, fields(filled), { description: "changed" }),
  );
  await seen;
  await sleep(1_000);
  await Promise.all([a.side.stop(), b.side.stop()]);
  await Promise.all(open);
}

/** What is tried after the requests of chance, in this order: the last one ends the services. */
export const scenarios: readonly { readonly name: string; run(pair: Pair): Promise<void> }[] = [
  { name: "an issuer that cannot be reached", run: unreachableIssuer },
  { name: "too many wrong codes", run: wrongCodes },
  { name: "requests that stay open", run: openRequests },
  { name: "too many streams", run: manyStreams },
  { name: "a database that another process holds", run: heldDatabase },
  { name: "the end of the services", run: endedStreams },
];
