// The complete list of routes of the protos, of all versions, that some one path
// matches. `**` counts as matching nothing too, as google/api/http.proto has it,
// so that a list and the Get below it are a pair: an empty id must stay a list.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { createFileRegistry, type DescService, fromBinary, hasOption } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { createMethodTable } from "../../../src/pipeline/method-table.js";
import { buildBindings } from "../../../src/transport/http/http-binding.js";
import type { Segment, Template } from "../../../src/transport/http/http-rule.js";
import { createRouteTable } from "../../../src/transport/rest/route-table.js";

// What wins, over what. `v2` stands for v2beta1 as well.
const scim = ["generateScimToken", "regenerateScimToken", "revokeScimToken", "setScimEnabled"];
const verb = (path: string, wins: string, loses: string) => [`POST ${path}/${wins}`, `POST ${path}/${loses}`] as const;
const collection = (path: string) => [`GET ${path}`, `GET ${path}/{uid=**}`] as const;
const digest = (what: string) =>
  [`GET /registry/v2/repos/{repo_uid=**}/digests/{digest}/${what}`, "GET /registry/v2/repos/{uid=**}"] as const;
const pairs: readonly (readonly [wins: string, loses: string])[] = [
  collection("/iam/v1/externalGroupRoleMappings"),
  ["POST /iam/v1/identities", "POST /iam/v1/identities/{parent_id=**}"],
  ["POST /iam/v1/rolebindings/batch/{parent=**}", "POST /iam/v1/rolebindings/{parent=**}"],
  verb("/iam/v1/groups", "{group_id=**}:requestGroupAccess", "{parent=**}"),
  verb("/iam/v1/account_associations", "{group=**}:check", "{group=**}"),
  ...["test", "suspend", "resume"].map((name) =>
    verb("/events/v1/subscriptions", `{uid=**}:${name}`, "{parent_id=**}"),
  ),
  ...scim.map((name) => verb("/iam/v1/identityProviders", `{identity_provider_id=**}:${name}`, "{parent_id=**}")),
  verb("/bindings/v1/temporaryBindings", "{uid=**}:setEnd", "{parent=**}"),
  ["PUT /registry/v1/repos/{repo_id=**}/deployment", "PUT /registry/v1/repos/{id=**}"],
  ["POST /registry/v1/repos/{parent_id=**}/deployment", "POST /registry/v1/repos/{parent_id=**}"],
  collection("/iam/v2/accountAssociations"),
  collection("/iam/v2/externalGroupRoleMappings"),
  collection("/iam/v2/groupInvites"),
  collection("/iam/v2/groups"),
  collection("/iam/v2/identities"),
  collection("/iam/v2/identityProviders"),
  ["GET /iam/v2/identityProviders/{parent=**}/scimUsers", "GET /iam/v2/identityProviders/{uid=**}"],
  collection("/iam/v2/roleBindings"),
  collection("/iam/v2/roles"),
  collection("/registry/v2/overlays"),
  collection("/registry/v2/overlayBindings"),
  collection("/registry/v2/repos"),
  collection("/registry/v2/tags"),
  collection("/vulnerabilities/v2/advisories"),
  collection("/events/v2/subscriptions"),
  verb("/iam/v2/groups", "{group_uid=**}:requestGroupAccess", "{parent=**}"),
  verb("/iam/v2/accountAssociations", "{uid=**}:checkAccountAssociation", "{parent=**}"),
  ...scim.map((name) => verb("/iam/v2/identityProviders", `{identity_provider_uid=**}:${name}`, "{parent=**}")),
  digest("architectures"),
  digest("size"),
  digest("stig"),
  ["GET /registry/v2/repos/{uid=**}/readme", "GET /registry/v2/repos/{uid=**}"],
  ["PATCH /registry/v2/repos/{repo_readme.uid=**}/readme", "PATCH /registry/v2/repos/{repo.uid=**}"],
];

// Paths that look like another route's, and what they reach.
const lookalikes: readonly (readonly [request: string, route: string, captures: string])[] = [
  ["PUT /registry/v1/repos/r%2Fx%2Fdeployment", "PUT /registry/v1/repos/{id=**}", "r/x/deployment"],
  ["PUT /registry/v1/repos/r%2Fx/deployment", "PUT /registry/v1/repos/{repo_id=**}/deployment", "r/x"],
  ["PUT /registry/v1/repos/deployment", "PUT /registry/v1/repos/{id=**}", "deployment"],
  ["POST /iam/v1/rolebindings/batch%2Fr", "POST /iam/v1/rolebindings/{parent=**}", "batch/r"],
  ["POST /iam/v1/rolebindings/batch", "POST /iam/v1/rolebindings/{parent=**}", "batch"],
  ["POST /iam/v1/account_associations/r%3Acheck", "POST /iam/v1/account_associations/{group=**}:check", "r"],
  ["POST /iam/v1/account_associations/r:checks", "POST /iam/v1/account_associations/{group=**}", "r:checks"],
  ["GET /registry/v1/repos/r/x:syncstatus", "GET /registry/v1/repos/{repo_id=**}:syncstatus", "r/x"],
  ["GET /registry/v1/repos/r/x:updatestatus", "GET /registry/v1/repos/{repo_id=**}:updatestatus", "r/x"],
  ["GET /registry/v1/tags/r/x/t/history", "GET /registry/v1/tags/{parent_id=**}/history", "r/x/t"],
  [
    "GET /registry/v1/repos/r/x/digests/sha256:a/sbom",
    "GET /registry/v1/repos/{repo_id=**}/digests/{digest=*}/sbom",
    "r/x sha256:a",
  ],
  ["GET /vulnerabilities/v1/advisories/r/a/events", "GET /vulnerabilities/v1/advisories/{parent_id=**}/events", "r/a"],
  [
    "POST /vulnerabilities/v1/advisories/r/a/events",
    "POST /vulnerabilities/v1/advisories/{parent_id=**}/events",
    "r/a",
  ],
  ["PATCH /iam/v1/identities/metadata", "PATCH /iam/v1/identities/metadata", ""],
  ["GET /iam/v1/identities/lookup", "GET /iam/v1/identities/lookup", ""],
  ["GET /iam/v1/externalGroupRoleMappings", "GET /iam/v1/externalGroupRoleMappings", ""],
  ["POST /iam/v1/externalGroupRoleMappings:batchDelete", "POST /iam/v1/externalGroupRoleMappings:batchDelete", ""],
  ["GET /registry/v2/repos/r/x%2Freadme", "GET /registry/v2/repos/{uid=**}", "r/x/readme"],
  ["GET /registry/v2/repos/readme", "GET /registry/v2/repos/{uid=**}", "readme"],
];

const image = readFileSync(new URL("../../../gen/api.binpb", import.meta.url));
const services = [...createFileRegistry(fromBinary(FileDescriptorSetSchema, image))].filter(
  (d) => d.kind === "service",
);
const unserved = { get: () => () => assert.fail("routes are looked up and not called") };
// Methods that declare no capabilities authenticate their callers themselves.
const settingsOf = (desc: DescService) =>
  Object.fromEntries(
    desc.methods.map((one) => [one.localName, { body: "none" as const, selfAuthenticating: !hasOption(one, iam) }]),
  );
const methods = createMethodTable(
  services.map((desc) => ({ desc, handlers: new Proxy({}, unserved), settings: settingsOf(desc) })),
);
const routes = [...methods.values()].flatMap(buildBindings).map(({ name, method, template }) => {
  return { name, method, template, target: `${method} ${template.text}` };
});
const tables = [createRouteTable(routes), createRouteTable([...routes].reverse())];
const overlaps = (): { a: (typeof routes)[number]; b: (typeof routes)[number]; paths: Witness[] }[] =>
  routes.flatMap((a, i) =>
    routes.slice(i + 1).flatMap((b) => {
      const paths = a.method === b.method ? witnesses(a.template, b.template) : [];
      return paths.length > 0 ? [{ a, b, paths }] : [];
    }),
  );

interface Witness {
  readonly path: string;
  /** Whether `**` takes nothing in one of the two. */
  readonly empty: readonly [a: boolean, b: boolean];
}

/** A path for each number of segments that both templates match. */
function witnesses(a: Template, b: Template): Witness[] {
  if (a.verb !== undefined && b.verb !== undefined && a.verb !== b.verb) return [];
  const longest = a.segments.length + b.segments.length;
  const found: Witness[] = [];
  for (let length = 1; length <= longest; length++) {
    const [left, right] = [expandSegments(a, length), expandSegments(b, length)];
    if (left === undefined || right === undefined) continue;
    const words = left.map((segment, i) => word(segment, right[i] as Segment));
    // With a verb in one of them alone, the other must take the verb as part of a name.
    const nameless = a.verb === undefined ? left.at(-1) : right.at(-1);
    if (words.includes(undefined) || (a.verb !== b.verb && nameless?.kind === "literal")) continue;
    const path = `/${words.join("/")}${(a.verb ?? b.verb) === undefined ? "" : `:${a.verb ?? b.verb}`}`;
    const shortest = (template: Template) => template.star2 >= 0 && length < template.segments.length;
    found.push({ path, empty: [shortest(a), shortest(b)] });
  }
  return found;
}

function expandSegments({ segments, star2 }: Template, length: number): Segment[] | undefined {
  const spare = length - segments.length + (star2 < 0 ? 0 : 1);
  if (spare < 0 || (star2 < 0 && spare > 0)) return undefined;
  return segments.flatMap((one): Segment[] => (one.kind === "star2" ? Array(spare).fill({ kind: "star" }) : [one]));
}

function word(a: Segment, b: Segment): string | undefined {
  if (a.kind !== "literal") return b.kind === "literal" ? b.text : "x";
  return b.kind === "literal" && b.text !== a.text ? undefined : a.text;
}

function inEachVersion<T extends readonly string[]>(row: T): T[] {
  if (!row.some((text) => text.includes("/v2/"))) return [row];
  return [row, row.map((text) => text.replace("/v2/", "/v2beta1/")) as readonly string[] as T];
}

const expected = new Map(pairs.flatMap(inEachVersion).map((pair) => [pair.toSorted().join(" and "), pair]));

describe("routes that one path matches", () => {
  it("are those of the list, and no others", () => {
    const found = overlaps().map(({ a, b }) => [a.target, b.target].toSorted().join(" and "));
    assert.deepEqual(found.toSorted(), [...expected.keys()].toSorted());
  });

  for (const { a, b, paths } of overlaps()) {
    const [wins = "none", loses = "none"] = expected.get([a.target, b.target].toSorted().join(" and ")) ?? [];
    it(`${wins} wins over ${loses.replace(/^\w+ /, "")}`, () => {
      for (const { path, empty } of paths) {
        const noName = wins === a.target ? empty[0] : empty[1];
        for (const table of tables) assert.equal(table.find(a.method, path)?.target, noName ? loses : wins, path);
      }
    });
  }
});

describe("paths that look like another route's", () => {
  for (const [request, route, captures] of lookalikes.flatMap(inEachVersion)) {
    it(`${request} is ${route}`, () => {
      const [method = "", path = ""] = request.split(" ");
      for (const table of tables) {
        const match = table.find(method, path);
        assert.deepEqual([match?.target, match?.captures.join(" ")], [route, captures]);
      }
    });
  }
});
