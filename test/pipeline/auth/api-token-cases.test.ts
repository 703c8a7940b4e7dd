// What a running service makes of every token in token-cases.ts, claim-cases.ts and test/issuer/strangers.
import assert from "node:assert/strict";
import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { generateTokenKey } from "../../../src/issuer/keys/key-generation.js";
import { rotateKey } from "../../../src/issuer/keys/key-states.js";
import { builtinRoleUid } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { createApiTokenKit, encodePart, type TokenKit } from "../../issuer/strangers/token-kit.js";
import { type StrangeToken, strangeTokens } from "../../issuer/strangers/tokens.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { chooseScale } from "../../support/scale.js";
import { HTTP2_START, http2Frame, rawTcp } from "../../transport/harness.js";
import { installationCases, limitCases, partyCases, timeCases } from "./claim-cases.js";
import { schemeCases, type TokenCase } from "./token-cases.js";

const unauthenticated = {
  code: 16,
  message: "Unauthenticated: authorization: a valid bearer token is required",
  details: [
    { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "UNAUTHENTICATED", domain: "iam.127.0.0.1" },
  ],
};
/** Bits between two flips over the wire; authenticate.test.ts flips every bit without it. Odd, so that each bit of a byte comes up. */
const BETWEEN_FLIPS = chooseScale(1, 7);
const CHALLENGE = 'Bearer realm="arbor"';
const INVALID = 'Bearer realm="arbor", error="invalid_token"';

/** Those of each sort that are presented over every protocol. */
const EVERYWHERE: ReadonlySet<string> = new Set([
  ...["two parts", "8 KB of dots", 'alg "none"', "a signature: 64 zero bytes", "another key under our kid"],
  ...["another key under its own kid", 'signed by us, {"crit":["exp"]}', "typ in mixed case"],
  ...["a BOM before the claims", "exp twice", "aud ours among eight"],
]);

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

describe("API tokens", () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  let service: Harness;
  let kit: TokenKit;
  let path: string;
  let listener: ReturnType<typeof createServer>;
  let listened = 0;
  // Filled before the tests that use it are run, but asked for when they are declared.
  const uids = { group: "", role: builtinRoleUid("owner"), deleted: "", pageKid: "" };
  const address = { listener: "http://127.0.0.1:9/keys" };

  before(async () => {
    listener = createServer((socket) => {
      listened++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    address.listener = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/keys`;
    service = await startHarness();
    const organisation = await service.organisation("example");
    const deleted = await service.identity();
    await service.bind(deleted.uid, "owner", organisation.group);
    await service.app.installation.store.write((tx) => tx.table(identityKind).delete(deleted.uid));
    const rows = await service.app.installation.store.read((tx) => tx.keys.list());
    const pageKid = rows.find(({ purpose }) => purpose === "page-token")?.kid ?? "";
    Object.assign(uids, { group: organisation.group, deleted: deleted.uid, pageKid });
    path = `/iam/v2beta1/groups/${organisation.group}`;
    const subject = { issuer: service.url, audience: service.url, identity: organisation.identity, nowMs: Date.now() };
    kit = createApiTokenKit(service.app.installation, subject);
  });
  after(async () => {
    agent.destroy();
    listener.close();
    await service.stop();
  });

  const suites: readonly [name: string, cases: () => readonly TokenCase[]][] = [
    ["scheme", () => schemeCases],
    ["strangers", () => strangeTokens(address.listener).map(toCase)],
    ["parties", () => partyCases],
    ["times", () => timeCases],
    ["installation", () => installationCases(uids)],
    ["limits", () => limitCases],
  ];

  for (const [name, cases] of suites) {
    describe(name, () => {
      for (const [i, { name: what, accepted, expired, everywhere }] of cases().entries()) {
        test(`${what}: ${accepted ? "accepted" : "refused"}`, async () => {
          const made = cases()[i];
          assert.ok(made);
          const authorization = made.authorization?.(kit) ?? `Bearer ${made.token?.(kit)}`;
          const response = await get({ authorization });
          if (accepted) assert.equal(response.status, 200, response.body);
          else assertUnauthenticated(response, INVALID, expired);
          if (everywhere) await overEveryProtocol(authorization, accepted ?? false, expired);
        });
      }
    });
  }

  test("no token at all: refused, with a challenge that names no error", async () => {
    assertUnauthenticated(await get({}), CHALLENGE);
    await overEveryProtocol(undefined, false);
  });

  test("an empty Authorization header is no token", async () => {
    assert.equal((await get({ authorization: "" })).status, 401);
  });

  const elsewhere: readonly { name: string; send: (token: string) => Promise<Answer>; status: number }[] = [
    { name: "the query", send: (token) => get({}, `${path}?access_token=${token}`), status: 401 },
    {
      name: "a cookie",
      send: (token) => get({ cookie: `access_token=${token}; authorization=Bearer ${token}` }),
      status: 401,
    },
    { name: "Proxy-Authorization", send: (token) => get({ "proxy-authorization": `Bearer ${token}` }), status: 401 },
    { name: "X-Authorization", send: (token) => get({ "x-authorization": `Bearer ${token}` }), status: 401 },
    {
      name: "Grpc-Metadata-Authorization",
      send: (token) => get({ "grpc-metadata-authorization": `Bearer ${token}` }),
      status: 401,
    },
    {
      name: "the body",
      send: (token) =>
        get({ "content-type": "application/json" }, path, "POST", JSON.stringify({ access_token: token, name: "x" })),
      status: 401,
    },
  ];

  for (const { name, send, status } of elsewhere) {
    test(`a good token in ${name} is not looked at`, async () => {
      assert.equal((await send(kit.token())).status, status);
    });
  }

  test("two Authorization headers over HTTP/1.1 are refused, both good or one", async () => {
    const good = `Bearer ${kit.token()}`;
    for (const [first, second] of [
      [good, good],
      [good, "Bearer x"],
      ["Bearer x", good],
      [good, ""],
      ["", good],
    ]) {
      assertUnauthenticated(await get(["authorization", first ?? "", "Authorization", second ?? ""]), INVALID);
    }
  });

  test("two Authorization headers over HTTP/2 are refused, both good or one", async () => {
    const good = `Bearer ${kit.token()}`;
    for (const fields of [[good], [good, good], [good, "Bearer x"], ["Bearer x", good]]) {
      const text = await rawHttp2Get(fields);
      if (fields.length === 1) assert.match(text, /"uid":"[0-9a-f]{40}"/);
      else assert.ok(text.includes(JSON.stringify(unauthenticated)), text);
    }
  });

  test("a token with any one bit flipped is refused, over the wire", async () => {
    const parts = kit.token().split(".");
    const flipped = parts.flatMap((part, i) => {
      const bytes = Buffer.from(part, "base64url");
      return Array.from({ length: Math.floor((bytes.length * 8) / BETWEEN_FLIPS) }, (_, n) => {
        const bit = n * BETWEEN_FLIPS;
        const changed = Buffer.from(bytes);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        return parts.with(i, changed.toString("base64url")).join(".");
      });
    });
    assert.ok(flipped.length > 2_000 / BETWEEN_FLIPS);
    await Promise.all(
      Array.from({ length: 8 }, async (_, worker) => {
        for (let i = worker; i < flipped.length; i += 8) {
          assert.equal((await get({ authorization: `Bearer ${flipped[i]}` })).status, 401, `flip ${i}`);
        }
      }),
    );
  });

  test("tokens too long for the headers are refused by HTTP itself", async () => {
    for (const token of [".".repeat(17_000), "A".repeat(17_000), encodePart("[".repeat(20_000))]) {
      assert.equal((await get({ authorization: `Bearer ${token}` })).status, 431);
    }
    assert.equal((await get({ authorization: `Bearer ${kit.token()}` })).status, 200, "and others go on");
  });

  test("nothing a token names was ever called", () => {
    assert.equal(listened, 0);
  });

  test("what is refused leaves no trace in the audit log", async () => {
    const { store } = service.app.installation;
    assert.deepEqual(
      (await store.read((tx) => tx.audit.listNewest(10))).map(({ type }) => type),
      ["arbor.bootstrap.v1"],
    );
  });

  test("a retired key still verifies, and the new one does at once", async () => {
    const before = kit.token();
    const { store, masterKey, keys, clock } = service.app.installation;
    const key = await generateTokenKey("ES256", masterKey, clock());
    await store.write((tx) => rotateKey(tx, key));
    await keys.refresh();
    assert.equal(keys.getSigningKey().kid, key.kid);
    assert.equal((await get({ authorization: `Bearer ${before}` })).status, 200);
    const sub = String(kit.claims().sub);
    assert.equal((await get({ authorization: `Bearer ${await service.token(sub)}` })).status, 200);
  });

  function messageOf(expired: boolean): string {
    return expired ? "Unauthenticated: authorization: the bearer token has expired" : unauthenticated.message;
  }

  function assertUnauthenticated({ status, headers, body }: Answer, challenge: string, expired = false): void {
    assert.equal(status, 401, body);
    assert.deepEqual(JSON.parse(body), { ...unauthenticated, message: messageOf(expired) });
    assert.equal(headers["www-authenticate"], challenge);
  }

  async function overEveryProtocol(
    authorization: string | undefined,
    accepted: boolean,
    expired = false,
  ): Promise<void> {
    const transports = [
      createConnectTransport({ baseUrl: service.url, httpVersion: "1.1" }),
      createGrpcTransport({ baseUrl: service.url }),
    ];
    for (const transport of transports) {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      const call = createClient(GroupsService, transport).getGroup({ uid: uids.group }, { headers });
      if (accepted) assert.equal((await call).uid, uids.group);
      else {
        await assert.rejects(call, (error) => {
          assert.ok(error instanceof ConnectError);
          assert.equal(error.rawMessage, messageOf(expired));
          return error.code === Code.Unauthenticated;
        });
      }
    }
  }

  function get(headers: Record<string, string> | string[], target = path, method = "GET", body = ""): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { host, port } = new URL(service.url);
      const all = Array.isArray(headers) ? ["host", host, ...headers] : { host, ...headers };
      const req = httpRequest(
        { host: "127.0.0.1", port, method, path: target, agent, headers: all as Record<string, string> },
        (res) => {
          const chunks: Buffer[] = [];
          res.on("data", (chunk: Buffer) => chunks.push(chunk));
          res.on("end", () => {
            resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks).toString() });
          });
        },
      );
      req.on("error", reject);
      req.end(body);
    });
  }

  // By hand, since no client sends the field twice.
  function rawHttp2Get(authorizations: readonly string[]): Promise<string> {
    const { port, host } = new URL(service.url);
    const fields = [[":path", path], [":authority", host], ...authorizations.map((value) => ["authorization", value])];
    // 0x82 is `:method: GET` and 0x86 `:scheme: http` of the static table.
    const block = Buffer.concat([
      Buffer.from([0x82, 0x86]),
      ...fields.map(([name = "", value = ""]) => literal(name, value)),
    ]);
    const bytes = Buffer.concat([HTTP2_START, http2Frame(1, 5, 1, block)]);
    return rawTcp(Number(port), bytes, (text) => /"details":\[.*\]\}|"updateTime":".*"/.test(text));
  }
});

function toCase({ differs, make, isApiToken }: StrangeToken): TokenCase {
  return { name: differs, token: make, accepted: isApiToken, everywhere: EVERYWHERE.has(differs) };
}

function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), hpackString(name), hpackString(value)]);
}

// RFC 7541, section 5: a length in 7 bits, or 127 and the rest in groups of 7, and the bytes.
function hpackString(text: string): Buffer {
  const length = text.length < 127 ? [text.length] : [127];
  for (let rest = text.length - 127; rest >= 0; rest = rest < 128 ? -1 : rest >> 7) {
    length.push(rest < 128 ? rest : (rest & 127) | 128);
  }
  return Buffer.concat([Buffer.from(length), Buffer.from(text)]);
}
