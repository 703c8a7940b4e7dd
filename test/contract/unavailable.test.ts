// The services that are declared and not implemented, and what of version 2 is not: each method gives its reason to callers
// with the right to call it, and to nobody else. docs/api-rules.md has the reasons.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { createMethodTable, readCapabilities } from "../../src/pipeline/method-table.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";
import { type Placed, populate } from "../iam/populate.js";
import { clientsFor, type RawClient, rawClients } from "./iam-clients.js";
import { findScopeField, isUnavailable, methods, nameOf, requestAt, services, subjectOf } from "./iam-methods.js";
import { listUnavailable } from "./unavailable-docs.js";

const isOfVersion2 = ({ parent }: DescMethodUnary) => /\.v2(?:beta1)?\./.test(parent.typeName);
const unavailable = methods.filter(isUnavailable);
const reasons = new Map([...listUnavailable("docs/api-rules.md"), ...listUnavailable("docs/v1.md")]);

let world: IamWorld;
let clients: readonly RawClient[];
let placed: Placed;
before(async () => {
  world = await startIamWorld();
  clients = rawClients(world.url);
  placed = await world.write((tx) => populate(tx, world.child, { name: "n", text: "t" }));
});
after(async () => {
  for (const client of clients) client.close();
  await world.stop();
});

describe("what is not implemented", () => {
  for (const method of unavailable.filter(isOfVersion2)) {
    it(`${nameOf(method)} says why to those who may call it`, async () => {
      const needed = readCapabilities(method).map(({ name }) => name);
      const [reader, other] = [await world.caller(needed), await world.caller(needed, world.foreign)];
      const without = await world.caller(["groups.list"]);
      const request = requestAt(method, subjectOf(method, placed));
      const reason = reasons.get(`${method.parent.name}.${method.name}`);
      assert.ok(reason);
      const denied = findScopeField(method).length > 0 ? [without, other] : [without];
      for (const client of clientsFor(method, clients)) {
        const { code, bytes } = await client.call(method, request, reader.token);
        assert.equal(code, "UNIMPLEMENTED", `${client.name}: ${bytes}`);
        assert.ok(bytes.includes(`${method.parent.name}.${method.name}: ${reason}`), `${client.name}: ${bytes}`);
        for (const { token } of denied) {
          assert.equal((await client.call(method, request, token)).code, "PERMISSION_DENIED", client.name);
        }
        assert.equal((await client.call(method, request, undefined)).code, "UNAUTHENTICATED", client.name);
      }
    });
  }

  it("has the same handlers in version 2 and its beta", () => {
    const table = createMethodTable(services);
    const stable = unavailable.filter(({ parent }) => parent.typeName.includes(".v2."));
    assert.ok(stable.length >= 4);
    for (const { parent, name } of stable) {
      const [one, beta] = [parent.typeName, parent.typeName.replace(".v2.", ".v2beta1.")].map((service) =>
        table.get(`/${service}/${name}`),
      );
      assert.ok(one && beta && one.kind === "unary" && beta.kind === "unary", name);
      assert.equal(one.handler, beta.handler, name);
    }
  });
});
