// The same call through gRPC, gRPC-Web, Connect and REST comes to the same: the
// same message, or the same code, text and details. Every row runs over gRPC, REST and one of
// the others in turn. `npm run test:python` sends the same calls by grpcio and curl.
import assert from "node:assert/strict";
import { it } from "node:test";
import { sample } from "../support/scale.js";
import { restClient, rpcClients } from "./clients.js";
import { cases, describeMatrix, STATUS } from "./matrix.js";

describeMatrix(
  (url) => [...rpcClients(url), restClient(url)],
  ([grpc, ...others], row) => {
    const rest = others.pop();
    return [grpc, ...sample(others, row), rest].filter((client) => client !== undefined);
  },
);

it("the protocol matrix covers every method and every code, half of it errors", () => {
  const of = (part: (one: (typeof cases)[number]) => string) => [...new Set(cases.map(part))].sort();
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

it("a row of the protocol matrix that differs over REST says why", () => {
  for (const { name, rest, expectRest, why } of cases)
    assert.equal(why !== undefined, rest === "none" || expectRest !== undefined, name);
});
