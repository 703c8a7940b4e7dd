// The same call through gRPC, gRPC-Web, Connect and REST comes to the same: the
// same message, or the same code, text and details.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type RestClient, restClient, rpcClients } from "./clients.js";
import type { MatrixCase } from "./matrix-case.js";
import { reads } from "./matrix-reads.js";
import { writes } from "./matrix-writes.js";
import type { WireClient } from "./wire.js";
import { startWorld, type World } from "./world.js";

// The HTTP status of each code (google.rpc.Code), written down once more.
const STATUS: Readonly<Record<string, number>> = {
  OK: 200,
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  UNIMPLEMENTED: 501,
};

let world: World;
let rest: RestClient;
let clients: readonly WireClient[];

before(async () => {
  world = await startWorld();
  rest = restClient(world.url);
  clients = [...rpcClients(world.url), rest];
});

after(async () => {
  for (const client of clients) client.close();
  await world.stop();
});

const cases: readonly MatrixCase[] = [...reads, ...writes];

describe("the protocol matrix", () => {
  for (const one of cases) {
    it(`${one.method} ${one.name}`, async () => {
      for (const client of clients) {
        if (client === rest && one.rest === "none") continue;
        await world.renew(one);
        const token = world.tokenOf(one.as ?? "owner");
        const sent = typeof one.rest === "object" ? world.fill(one.rest) : undefined;
        const outcome = await client.call({ method: one.method, request: world.fill(one.request), token, rest: sent });
        const expected = (client === rest ? one.expectRest : undefined) ?? one.expect;
        assert.deepEqual(world.mask(outcome), expected, client.name);
        if (client === rest) assert.equal(rest.status, one.status ?? STATUS[expected.code]);
      }
    });
  }

  it("covers every method and every code, half of it errors", () => {
    const of = (part: (one: MatrixCase) => string) => [...new Set(cases.map(part))].sort();
    assert.deepEqual(
      of(({ method }) => method),
      [
        "CheckEligibility",
        "CreateGroup",
        "DeleteGroup",
        "GetGroup",
        "ListGroups",
        "LookupGroup",
        "MergeGroups",
        "RequestGroupAccess",
        "UpdateGroup",
      ],
    );
    assert.deepEqual(
      of(({ expect }) => expect.code),
      Object.keys(STATUS).sort(),
    );
    assert.ok(cases.length >= 60);
    assert.ok(cases.filter(({ expect }) => expect.code !== "OK").length * 2 >= cases.length);
  });
});
