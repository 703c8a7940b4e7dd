// A mounted service takes nothing from the platform: what it cannot be served beside stops the start.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { DescService } from "@bufbuild/protobuf";
import { PingService } from "#gen/chainguard/platform/ping/v2beta1/ping_pb.js";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { Health } from "#gen/health/v1/health_pb.js";
import { mount } from "../../src/pipeline/mount.js";
import type { MountHttpRule } from "../../src/pipeline/mount-options.js";
import { type Harness, startHarness } from "../support/harness.js";
import { LibraryService } from "../support/library/library_pb.js";

const withRule = (rule: MountHttpRule) =>
  mount(LibraryService, {}, { access: "public", http: { getBook: rule, createBook: null } });

const start = (...mounts: ReturnType<typeof mount>[]) => startHarness({}, { mounts });

async function startError(starting: Promise<Harness>): Promise<string> {
  const service = await starting.catch((error: unknown) => {
    assert.ok(error instanceof TypeError, String(error));
    return error.message;
  });
  if (typeof service === "string") return service;
  await service.stop();
  return "";
}

const GET_GROUP = "chainguard.platform.iam.v2beta1.GroupsService.GetGroup: GET /iam/v2beta1/groups/{uid=**}";
const describeCollision = (path: string, other: string) =>
  `example.library.v1.LibraryService.GetBook: ${path} would take requests of ${other}`;
const describeOwnPath = (path: string, other: string) =>
  `example.library.v1.LibraryService.GetBook: ${path}: ${other} is a path of Arbor's own`;

const rows: readonly { readonly reason: string; readonly rule: MountHttpRule; readonly error: string | RegExp }[] = [
  { reason: "a fixed path", rule: { get: "/healthz" }, error: describeOwnPath("GET /healthz", "/healthz") },
  {
    reason: "a fixed path by another method",
    rule: { post: "/readyz" },
    error: describeOwnPath("POST /readyz", "/readyz"),
  },
  { reason: "the documentation", rule: { get: "/docs" }, error: describeOwnPath("GET /docs", "/docs") },
  { reason: "the version", rule: { get: "/version" }, error: describeOwnPath("GET /version", "/version") },
  { reason: "an endpoint of OAuth", rule: { get: "/sts/exchange" }, error: /GetBook/ },
  { reason: "below a fixed path", rule: { get: "/oauth/callback/{name}" }, error: /is a path of Arbor's own/ },
  { reason: "the path of a method", rule: { get: "/iam/v2beta1/groups/{name=**}" }, error: /GetBook|GetGroup/ },
  {
    reason: "one resource of a method",
    rule: { get: "/iam/v2beta1/groups/mine" },
    error: describeCollision("GET /iam/v2beta1/groups/mine", GET_GROUP),
  },
  {
    reason: "some resources of a method",
    rule: { get: "/iam/v2beta1/groups/{name=*}" },
    error: describeCollision("GET /iam/v2beta1/groups/{name=*}", GET_GROUP),
  },
  {
    reason: "a verb of what would be a resource",
    rule: { get: "/iam/v2beta1/groups/{name=*}:archive" },
    error: describeCollision("GET /iam/v2beta1/groups/{name=*}:archive", GET_GROUP),
  },
  { reason: "an additional binding", rule: { get: "/a", additionalBindings: [{ get: "/healthz" }] }, error: /healthz/ },
  { reason: "another method of a path", rule: { put: "/iam/v2beta1/groups/{name=**}" }, error: "" },
  { reason: "what is left by the platform", rule: { get: "/iam/{name=**}" }, error: "" },
  { reason: "a path beside a fixed one", rule: { get: "/docs-of/{name}" }, error: "" },
];

describe("a service is mounted beside the platform", () => {
  for (const { reason, rule, error } of rows) {
    test(`with a rule for ${reason}: ${error === "" ? "served" : "refused"}`, async () => {
      const message = await startError(start(withRule(rule)));
      if (typeof error === "string") assert.equal(message, error);
      else assert.match(message, error);
    });
  }

  test("but not in place of a service of the platform, and once", async () => {
    const library = mount(LibraryService, {}, { access: "public" });
    const rejected: readonly (readonly [DescService, readonly ReturnType<typeof mount>[]])[] = [
      [LibraryService, [library, library]],
      ...[PingService, Health, ServerReflection].map(
        (desc) => [desc, [mount(desc as DescService, {}, { access: "public" })]] as const,
      ),
    ];
    for (const [{ typeName }, mounts] of rejected) {
      assert.equal(await startError(start(...mounts)), `${typeName} is served already, so it cannot be mounted`);
    }
  });
});
