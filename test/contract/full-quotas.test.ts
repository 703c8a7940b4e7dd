// No caller holds the event loop: every method is called in an organisation that has reached its quotas, about what has
// most below it, and no turn of the event loop takes longer than 25 ms of the processor. A campaign fills every quota to
// its default; `npm test` fills a tenth, with at most 5,000 of a kind.
import assert from "node:assert/strict";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { after, before, describe, it } from "node:test";
import { type DescMethodUnary, type Message, toBinary } from "@bufbuild/protobuf";
import { type Harness, startHarness } from "../support/harness.js";
import { chooseScale } from "../support/scale.js";
import { type Turns, takeShortest, watchTurns } from "../support/turns.js";
import { type FullOrganisation, fillOrganisation } from "./full-organisation.js";
import { requestOf } from "./iam-clients.js";
import { calledMethods, isUnavailable, nameOf, requestAt, subjectOf } from "./iam-methods.js";
import { letDoEverything } from "./registry-things.js";
import { codeName } from "./wire.js";

const SHARE = chooseScale(1, 0.1);
const MOST = chooseScale(Number.POSITIVE_INFINITY, 5_000);
const MAX_MS = 25;
/** A deletion cannot be tried again, so that a turn may contain work of the garbage collector and of SQLite's log. */
const MAX_DELETION_MS = 60;

let service: Harness;
let full: FullOrganisation;
let root: string;
let turns: Turns;
let session: ClientHttp2Session;
/** Callers: one who may do everything, and an identity with as many bindings as there may be. */
const tokens = new Map<string, string>();
const longest: { method: string; ms: number; maxMs: number }[] = [];

before(async () => {
  service = await startHarness();
  const { store } = service.app.installation;
  const organisation = await service.organisation("full.example");
  root = organisation.group;
  full = await fillOrganisation(store, root, SHARE, MOST);
  const everything = await service.identity({ email: "ann@full.example" });
  await store.write((tx) => letDoEverything(tx, everything.uid, root));
  await service.bind(everything.uid, "owner", root);
  tokens.set("owner", everything.token);
  tokens.set("bound", await service.token(full.bound));
  // An idle connection would have been closed meanwhile.
  session = connect(service.url);
  turns = watchTurns();
});
after(async () => {
  turns.stop();
  session.close();
  await service.stop();
});

/** Calls without keeping the response, which this thread would have to join; answers the name of the code. */
function call(method: DescMethodUnary, request: Message, token = ""): Promise<string> {
  const bytes = toBinary(method.input, request);
  const frame = Buffer.alloc(5 + bytes.length);
  frame.writeUInt32BE(bytes.length, 1);
  frame.set(bytes, 5);
  const stream = session.request({
    ...{ ":method": "POST", ":path": `/${method.parent.typeName}/${method.name}`, te: "trailers" },
    ...{ "content-type": "application/grpc", "grpc-timeout": "120S", authorization: `Bearer ${token}` },
  });
  return new Promise((resolve, reject) => {
    let status: unknown;
    const note = (headers: IncomingHttpHeaders) => {
      status = headers["grpc-status"] ?? status;
    };
    stream.on("response", note).on("trailers", note).on("error", reject);
    stream.on("data", () => {}).on("end", () => resolve(status === "0" ? "OK" : codeName(Number(status))));
    stream.end(frame);
  });
}

const isRead = ({ name }: DescMethodUnary) => /^(Get|List|Lookup|Check|Validate|Diff)/.test(name);
const isDeletion = ({ name }: DescMethodUnary) => /Delete|Drop/.test(name);

// Requests that differ from the plain one in what takes longer.
function requestsOf(method: DescMethodUnary): Message[] {
  const subject = subjectOf(method, { ...full.placed, identity: full.bound });
  const requests = [requestAt(method, subject)];
  const { field } = method.input;
  if (!isRead(method)) return requests;
  const variants = [
    { uidp: { descendantsOf: root }, pageSize: 1_000 },
    { uidp: { descendantsOf: root }, pageSize: 1_000, orderBy: "name desc" },
    { uidp: { descendantsOf: root }, pageSize: 1_000, skip: 900 },
    { uidp: { childrenOf: full.placed.group }, pageSize: 1_000 },
    { identity: full.bound, pageSize: 1_000 },
    { role: full.placed.role, pageSize: 1_000 },
    { relationshipType: 2, pageSize: 1_000 },
    { name: "nothing", pageSize: 1_000 },
  ];
  for (const variant of variants) {
    // Version 1 of some lists has other fields of these names.
    const fits = (key: string, value: unknown) =>
      field[key] !== undefined && (typeof value === "object") === (field[key].fieldKind === "message");
    const known = Object.fromEntries(
      Object.entries(variant).filter(([key, value]) => fits(key, value) && field[key]?.fieldKind !== "enum"),
    );
    if (Object.keys(known).length > ("pageSize" in known ? 1 : 0)) requests.push(requestOf(method, known));
  }
  return requests;
}

async function measure(method: DescMethodUnary, request: Message, who: string): Promise<void> {
  let code = "";
  const maxMs = isDeletion(method) ? MAX_DELETION_MS : MAX_MS;
  const ms = await takeShortest(
    turns,
    maxMs,
    async () => {
      code = await call(method, request, tokens.get(who));
    },
    isDeletion(method) ? 1 : undefined,
  );
  longest.push({ method: `${nameOf(method)} ${who} ${code}`, ms, maxMs });
  assert.doesNotMatch(code, /^(INTERNAL|UNKNOWN|UNAUTHENTICATED)$/);
}

describe("in an organisation at its quotas", () => {
  // Deletions come last, of what contains least first, and before them what voids a token that others are called with.
  const order = (method: DescMethodUnary) => {
    if (isDeletion(method)) return /Group|Provider|Repo/.test(method.parent.name) ? 3 : 2;
    return /^Revoke\w*Tokens$/.test(method.name) ? 1 : 0;
  };
  const methods = calledMethods
    .filter((method) => !isUnavailable(method))
    .map((method) => ({ method, rank: order(method) }))
    .sort((a, b) => a.rank - b.rank);

  it("no method holds the event loop", async (t) => {
    for (const { method } of methods) {
      for (const request of requestsOf(method)) await measure(method, request, "owner");
      if (isRead(method)) await measure(method, requestAt(method, full.placed.group), "bound");
    }
    longest.sort((a, b) => b.ms - a.ms);
    for (const { method, ms } of longest.slice(0, 40)) t.diagnostic(`${ms.toFixed(1)} ms  ${method}`);
    const tooLong = longest.filter(({ ms, maxMs }) => ms > maxMs);
    assert.deepEqual(
      tooLong.map(({ method, ms }) => `${method}: ${ms.toFixed(1)} ms`),
      [],
    );
  });
});
