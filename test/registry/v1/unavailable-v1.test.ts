// The methods of version 1 that are not implemented: each answers with a reason to callers with the right to call
// it, and docs/v1.md lists exactly these.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { DescMethodUnary, DescService, MessageInitShape } from "@bufbuild/protobuf";
import { Identities } from "#gen/chainguard/platform/events/identities_pb.js";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { Vulnerabilities, type VulnReportFilterSchema } from "#gen/chainguard/platform/registry/vulnerabilities_pb.js";
import { builtinRoleUid } from "../../../src/kernel/ids.js";
import { unavailableRegistryV1, unavailableVulnerabilitiesV1 } from "../../../src/kernel/unavailable-methods.js";
import { readCapabilities } from "../../../src/pipeline/method-table.js";
import { listUnavailable } from "../../contract/unavailable-docs.js";
import type { Somebody } from "../../iam/iam-world.js";
import { type Wire, wireNames, wireOf } from "../../iam/v1/wires.js";
import { digestOf, type RegistryWorld, startRegistryWorld } from "../registry-world.js";

interface Unavailable {
  readonly method: DescMethodUnary;
  readonly name: string;
  readonly reason: string;
}

function unavailableIn(service: DescService, reasons: Readonly<Record<string, string>>): Unavailable[] {
  return Object.entries(reasons).map(([localName, reason]) => {
    const method = service.method[localName] as DescMethodUnary;
    return { method, name: `${service.name}.${method.name}`, reason };
  });
}

const all = [
  ...unavailableIn(Registry, unavailableRegistryV1),
  ...unavailableIn(Vulnerabilities, unavailableVulnerabilitiesV1),
];

let world: RegistryWorld;
let repo: string;
let foreign: string;
let reader: Somebody;
let nobody: string;
before(async () => {
  world = await startRegistryWorld();
  repo = await world.repo({ name: "ours" });
  foreign = await world.repo({ name: "theirs" }, world.foreign);
  const needed = all.flatMap(({ method }) => readCapabilities(method).map(({ name }) => name));
  reader = await world.caller([...new Set(needed)]);
  nobody = (await world.harness.identity()).token;
});
after(() => world.stop());

// Whatever of these the request of a method has.
const requestFor = ({ input }: DescMethodUnary, repoId: string) => {
  const values = { repoId, registryId: repoId.split("/")[0], package: "curl", digest: digestOf("a") };
  const known = Object.entries(values).filter(([name]) => input.field[name] !== undefined);
  return Object.fromEntries(known) as MessageInitShape<typeof input>;
};

for (const wireName of wireNames) {
  describe(`over ${wireName}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(wireName, world.url, reader.token);
    });
    after(() => wire.close());

    for (const { method, name, reason } of all) {
      it(`${name} says why it is not implemented, to those who may call it`, async () => {
        const request = requestFor(method, repo);
        assert.equal(await wire.expectError(method, request), `Unimplemented: ${name}: ${reason}`);
        for (const token of [nobody, world.foreignOwner.token]) {
          if (token !== nobody && !("repoId" in request || "registryId" in request)) continue;
          assert.match(await wire.expectError(method, request, token), /^Permission denied: /);
        }
      });
    }

    it("the answer does not tell whether a foreign repo exists", async () => {
      const ask = (filter: MessageInitShape<typeof VulnReportFilterSchema>) =>
        wire.expectError(Vulnerabilities.method.listVulnReports, filter);
      const missing = `${foreign.slice(0, -16)}${"0".repeat(16)}`;
      for (const repoId of [foreign, missing]) {
        const denied = `Permission denied: vuln_report.list at ${repoId} (or it might not exist)`;
        assert.equal(await ask({ repoId }), denied);
        assert.equal(await ask({ repoId, digest: digestOf("a") }), denied);
        for (const { method } of all) {
          const request = requestFor(method, repoId);
          if ("repoId" in request) assert.match(await wire.expectError(method, request), /^Permission denied: .* at /);
        }
      }
      assert.match(await ask({ repoId: "x" }), /^Invalid argument: repoId: repoId must be an id/);
    });
  });
}

describe("docs/v1.md", () => {
  const rows = listUnavailable("docs/v1.md");

  it("lists the methods that are not implemented, with the reasons they give", () => {
    const listed = rows.filter(([name]) => /^(Registry|Vulnerabilities)\.\w+$/.test(name));
    assert.deepEqual(listed.sort(), all.map(({ name, reason }) => [name, reason] as const).sort());
  });

  it("lists those of other services with the reasons they give", async () => {
    const { owner, harness } = world;
    const wire = wireOf("gRPC", harness.url, owner.token);
    const invite = { ttl: { seconds: 60n }, role: builtinRoleUid("owner") };
    const outside = { subject: "somebody", issuer: "https://issuer.example" };
    const told = {
      "GroupInvites.CreateWithGroup": await wire.expectError(GroupInvites.method.createWithGroup, invite),
      "Identities.Create": await wire.expectError(Identities.method.create, outside),
    };
    wire.close();
    const listed = new Map(rows);
    for (const [name, text] of Object.entries(told)) assert.equal(text, `Unimplemented: ${name}: ${listed.get(name)}`);
  });

  it("lists the services of version 1, each with what is not implemented of it", () => {
    const listed = readFileSync("docs/v1.md", "utf8").matchAll(/^\| `(chainguard\.[\w.]+)` \|/gm);
    assert.deepEqual([...listed].map(([, name]) => name).sort(), servicesOfVersion1().sort());
  });
});

/** The services of all proto files but those of version 2. */
function servicesOfVersion1(directory = "proto/chainguard/platform"): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return /^v2/.test(entry.name) ? [] : servicesOfVersion1(path);
    const text = readFileSync(path, "utf8");
    const [, name] = /^package (.*);$/m.exec(text) ?? [];
    return [...text.matchAll(/^service (\w+) /gm)].map(([, service]) => `${name}.${service}`);
  });
}
