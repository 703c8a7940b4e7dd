// Requests nobody honest sends, to a real process: each gets its typed error,
// and the process serves on.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { tempDir } from "../support/temp-dir.js";
import { type Service, startHost, startService } from "./process.js";

const GROUPS = "/iam/v2beta1/groups";
const INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const MIB = 1024 * 1024;

let service: Service;
let uids: Readonly<Record<string, string>>;
let token: string;
let powerless: string;

before(async () => {
  const data = tempDir();
  service = await startService(data, "--log-level", "error", "--no-access-log");
  const host = startHost();
  const ours = await host.bootstrap(data, "acme.example");
  const foreign = await host.bootstrap(data, "other.example");
  const gone = await host.bootstrap(data, "gone.example");
  host.close();
  [token, powerless] = [ours.token, gone.token];
  // A caller that deletes the only group it owns has no rights left.
  assert.equal((await send({ method: "DELETE", path: `${GROUPS}/${gone.group}`, bearer: powerless })).status, 200);
  const made = await send({ method: "POST", path: `${GROUPS}/${ours.group}`, body: '{"name":"core"}' });
  assert.equal(made.status, 200);
  const child = (JSON.parse(made.body) as { readonly uid: string }).uid;
  uids = { ours: ours.group, foreign: foreign.group, child };
});

after(() => service?.stop());

interface Request {
  readonly method?: string;
  /** Uids stand in angle brackets. */
  readonly path: string;
  /** The token; that of the organisation's owner unless given, none when empty. */
  readonly bearer?: string;
  /** Header lines; a Host line among them replaces the usual one. */
  readonly lines?: readonly string[];
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

// By hand, since clients refuse to send, or repair, much of what is sent here.
function send({ method = "GET", path, bearer = token, lines = [], body = "" }: Request): Promise<Answer> {
  const { port, host } = new URL(service.url);
  const fill = (text: string) => text.replace(/<(\w+)>/g, (_, name) => uids[name] ?? "").replaceAll("TOKEN", token);
  const head = [
    `${method} ${fill(path)} HTTP/1.1`,
    ...(lines.some((line) => /^host:/i.test(line)) ? [] : [`Host: ${host}`]),
    ...(bearer === "" ? [] : [`Authorization: Bearer ${bearer}`]),
    ...(body === "" ? [] : ["Content-Type: application/json"]),
    ...(body === "" || lines.some((line) => /^transfer-encoding:/i.test(line))
      ? []
      : [`Content-Length: ${body.length}`]),
    ...lines.filter((line) => line !== "Host: none").map(fill),
  ];
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(`${head.join("\r\n")}\r\n\r\n${body}`));
    socket.setEncoding("utf8");
    const resolveResponse = () => {
      const end = received.indexOf("\r\n\r\n");
      const response = { head: received.slice(0, end), body: received.slice(end + 4) };
      const length = /^content-length: (\d+)$/im.exec(response.head)?.[1];
      if (end < 0 || Number(length) !== Buffer.byteLength(response.body)) return false;
      resolve({ status: Number(received.slice(9, 12)), ...response });
      return true;
    };
    socket.on("data", (chunk) => {
      received += chunk;
      if (resolveResponse()) socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`half an answer: ${received}`)));
  });
}

interface Hostile extends Request {
  readonly name: string;
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}

const IA = "INVALID_ARGUMENT";
const NO_UID = "Invalid argument: uid: uid must be a uid, such as the service assigns";
const NO_DOTS = "Invalid argument: path: segments . and .. are not allowed";
const BAD_HOST = "Invalid argument: host must be a valid host name with an optional port";
const ONE_HOST = "Invalid argument: exactly one host header is required";
const NO_TOKEN = "Unauthenticated: authorization: a valid bearer token is required";
const NO_HTTP = "Invalid argument: the request is not valid HTTP";
const LIST = `Permission denied: groups.list at <%> (or it might not exist)`;

const bad = (name: string, path: string, message: string): Hostile => ({
  name,
  path,
  status: 400,
  reason: IA,
  message,
});
const hostOf = (name: string, lines: readonly string[], message: string): Hostile => ({
  ...bad(name, GROUPS, message),
  lines,
});
const withoutToken = (name: string, more: Partial<Request>): Hostile => ({
  name,
  path: GROUPS,
  bearer: "",
  ...more,
  status: 401,
  reason: "UNAUTHENTICATED",
  message: NO_TOKEN,
});
const tooLarge = (name: string, more: Partial<Request>): Hostile => ({
  name,
  method: "POST",
  path: `${GROUPS}/<ours>`,
  ...more,
  status: 413,
  reason: "RESOURCE_EXHAUSTED",
  message: "Resource exhausted: body: must be at most 262144 bytes",
});
const big = `{"name":"${"a".repeat(5 * MIB)}"}`;

const cases: readonly Hostile[] = [
  {
    name: "a foreign group",
    path: `${GROUPS}/<foreign>`,
    status: 403,
    reason: "PERMISSION_DENIED",
    message: LIST.replace("%", "foreign"),
  },
  {
    name: "a foreign group to be deleted",
    method: "DELETE",
    path: `${GROUPS}/<foreign>`,
    status: 403,
    reason: "PERMISSION_DENIED",
    message: "Permission denied: groups.delete at <foreign> (or it might not exist)",
  },
  bad(
    "a forged page token",
    `${GROUPS}?page_token=${"QUJD".repeat(30)}`,
    "Invalid argument: pageToken: pageToken is not one this service made",
  ),

  hostOf("a Host with a blank", ["Host: a b"], BAD_HOST),
  hostOf("a Host with a port too big", ["Host: a:99999"], BAD_HOST),
  hostOf("a Host with two ports", ["Host: a:1:2"], BAD_HOST),
  hostOf("a Host with a path", ["Host: a/b"], BAD_HOST),
  hostOf("a Host with a user", ["Host: a@b"], BAD_HOST),
  hostOf("a Host that is no address", ["Host: [::1"], BAD_HOST),
  hostOf("a Host with an escape", ["Host: %00"], BAD_HOST),
  hostOf("an empty Host", ["Host:"], BAD_HOST),
  hostOf("no Host", ["Host: none"], ONE_HOST),
  hostOf("two Hosts", ["Host: a", "Host: b"], ONE_HOST),

  tooLarge("5 MiB", { body: big }),
  tooLarge("5 MiB in chunks", {
    lines: ["Transfer-Encoding: chunked"],
    body: `${big.length.toString(16)}\r\n${big}\r\n0\r\n\r\n`,
  }),
  tooLarge("5 MiB announced", { lines: [`Content-Length: ${5 * MIB}`, "Expect: 100-continue"] }),

  bad("a slash escaped twice", `${GROUPS}/<ours>%252F0000000000000000`, NO_UID),
  bad("U+0000", `${GROUPS}/<ours>%00`, "Invalid argument: path: control characters are not allowed"),
  bad("a newline", `${GROUPS}/<ours>%0A`, "Invalid argument: path: control characters are not allowed"),
  bad("dots", `${GROUPS}/<ours>/../<foreign>`, NO_DOTS),
  bad("dots at the end", `${GROUPS}/<ours>/..`, NO_DOTS),
  bad("dots at the beginning", `/..${GROUPS}`, NO_DOTS),
  bad("escaped dots", `${GROUPS}/<ours>/%2e%2E/<foreign>`, NO_DOTS),
  bad("dots behind an escaped slash", `${GROUPS}/<ours>%2F..%2F<foreign>`, NO_DOTS),
  bad("a broken escape", `${GROUPS}/<ours>%zz`, "Invalid argument: path: a percent escape is malformed or not UTF-8"),
  bad("no UTF-8", `${GROUPS}/<ours>%ff`, "Invalid argument: path: a percent escape is malformed or not UTF-8"),
  bad("a long path", `${GROUPS}/${"a".repeat(8_000)}`, "Invalid argument: path: at most 4096 characters are allowed"),
  bad("a long uid", `${GROUPS}/<ours>${"/0000000000000000".repeat(64)}`, NO_UID),
  {
    ...bad("an empty segment", `${GROUPS}//<ours>`, ""),
    status: 404,
    reason: "NOT_FOUND",
    message: `Not found: path: no such path ${GROUPS}//<ours>`,
  },

  withoutToken("no token", {}),
  withoutToken("two tokens", { lines: ["Authorization: Bearer TOKEN", "Authorization: Bearer TOKEN"] }),
  withoutToken("a token and nonsense", { lines: ["Authorization: Bearer TOKEN", "authorization: Bearer x"] }),
  withoutToken("two tokens in one", { lines: ["Authorization: Bearer TOKEN, Bearer TOKEN"] }),
  withoutToken("another scheme", { lines: ["Authorization: Basic TOKEN"] }),
  withoutToken("a token in a cookie", { lines: ["Cookie: token=TOKEN"] }),
  withoutToken("a token in gRPC's name for headers", { lines: ["Grpc-Metadata-Authorization: Bearer TOKEN"] }),
  withoutToken("a token in the query", { path: `${GROUPS}?access_token=TOKEN` }),
  withoutToken("a malformed body without a token", { method: "POST", path: `${GROUPS}/<ours>`, body: "{" }),

  {
    ...bad("another method in a header", `${GROUPS}/<foreign>`, LIST.replace("%", "foreign")),
    lines: ["X-HTTP-Method-Override: DELETE"],
    status: 403,
    reason: "PERMISSION_DENIED",
  },
  {
    ...bad(
      "a method there is not",
      `${GROUPS}/<ours>`,
      "Unimplemented: method: REPORT is not among DELETE, GET, HEAD, OPTIONS, PATCH, POST",
    ),
    method: "REPORT",
    status: 405,
    reason: "UNIMPLEMENTED",
  },
  { ...bad("two lengths", GROUPS, NO_HTTP), lines: ["Content-Length: 1", "Content-Length: 2"] },
  { ...bad("a length and chunks", GROUPS, NO_HTTP), lines: ["Content-Length: 1", "Transfer-Encoding: chunked"] },
  {
    ...bad("headers without end", GROUPS, "Invalid argument: the headers are larger than allowed"),
    lines: [`X-Big: ${"a".repeat(20_000)}`],
    status: 431,
  },
  {
    ...bad("half of JSON", `${GROUPS}/<ours>`, "Invalid argument: body: body is not valid JSON at its end"),
    method: "POST",
    body: '{"name":',
  },
  {
    ...bad("a key twice", `${GROUPS}/<ours>`, ""),
    method: "POST",
    body: '{"name":"a","name":"b"}',
    message: "Invalid argument: name: name is given twice",
  },
  {
    ...bad("a deep body", `${GROUPS}/<ours>`, ""),
    method: "POST",
    body: `{"name":${"[".repeat(5_000)}`,
    message: "Invalid argument: body: body must not nest deeper than 64 levels",
  },
  {
    ...bad("a prototype", `${GROUPS}/<ours>`, ""),
    method: "POST",
    body: '{"__proto__":{"name":"a"}}',
    message: "Invalid argument: __proto__: __proto__ is not allowed as a name",
  },
];

describe("a hostile request", () => {
  for (const one of cases) {
    it(`with ${one.name} gets its error`, async () => check(one));
  }

  it("without rights gets its error", async () => {
    const path = `${GROUPS}/<ours>`;
    await check({
      name: "",
      path,
      bearer: powerless,
      status: 403,
      reason: "PERMISSION_DENIED",
      message: LIST.replace("%", "ours"),
    });
  });

  it("with an escaped slash reaches what it names", async () => {
    const plain = await send({ path: `${GROUPS}/<child>` });
    const escaped = await send({ path: `${GROUPS}/${(uids.child ?? "").replaceAll("/", "%2F")}` });
    assert.equal(plain.status, 200);
    assert.deepEqual([escaped.status, escaped.body], [plain.status, plain.body]);
  });
});

async function check(one: Hostile): Promise<void> {
  const { status, head, body } = await send(one);
  const { message, details } = JSON.parse(body) as { message: string; details: readonly Record<string, unknown>[] };
  const expected = one.message.replace(/<(\w+)>/g, (_, name) => uids[name] ?? "");
  assert.deepEqual([status, message], [one.status, expected]);
  assert.deepEqual(details[0], { "@type": INFO, reason: one.reason, domain: "iam.127.0.0.1" });
  assert.match(head, /^content-type: application\/json/im);
  assert.doesNotMatch(body, /eyJ|node_modules|SQLITE|\.[jt]s:\d/, "says nothing of the inside");
  assert.ok(service.alive());
  assert.equal((await fetch(`${service.url}/healthz`)).status, 200);
}
