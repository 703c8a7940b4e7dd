// The fields that errors name: by the names of the proto over gRPC, gRPC-Web and Connect in binary, by those of JSON
// over REST and Connect in JSON. The texts are the same everywhere.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { create, type DescMethodUnary, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Identities as EventIdentities } from "#gen/chainguard/platform/events/identities_pb.js";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { GroupsService as StableGroups } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.js";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";
import { LIMIT_MS } from "../support/wait-until.js";
import { restAs } from "./rest.js";

let world: IamWorld;
let transports: readonly (readonly [name: string, spelling: "proto" | "json", Transport])[];
before(async () => {
  world = await startIamWorld();
  const baseUrl = world.url;
  const connect = (options: object) => createConnectTransport({ baseUrl, httpVersion: "1.1", ...options });
  transports = [
    ["gRPC", "proto", createGrpcTransport({ baseUrl })],
    ["gRPC in JSON", "proto", createGrpcTransport({ baseUrl, useBinaryFormat: false })],
    ["gRPC-Web", "proto", createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
    ["Connect in binary", "proto", connect({ useBinaryFormat: true })],
    ["Connect in binary by GET", "proto", connect({ useBinaryFormat: true, useHttpGet: true })],
    ["Connect in JSON", "json", connect({ useBinaryFormat: false })],
    ["Connect in JSON by GET", "json", connect({ useBinaryFormat: false, useHttpGet: true })],
  ];
});
after(() => world.stop());

interface Case {
  readonly method: DescMethodUnary;
  readonly request: () => JsonObject;
  readonly rest: readonly [method: string, path: () => string, body?: () => JsonValue];
  readonly proto: readonly string[];
  readonly json: readonly string[];
}

const viewer = builtinRoleUid("viewer");
const oidc = { issuer: "https://login.example", clientId: "id" };
const provider = { name: "n", defaultRole: viewer, oidc };
const cases: readonly Case[] = [
  {
    method: GroupsService.method.listGroups,
    request: () => ({ pageSize: -1, orderBy: "x", uidp: { childrenOf: "*" } }),
    rest: ["GET", () => "/iam/v2beta1/groups?page_size=-1&order_by=x&uidp.children_of=*"],
    proto: ["page_size", "order_by", "uidp.children_of"],
    json: ["pageSize", "orderBy", "uidp.childrenOf"],
  },
  {
    method: StableGroups.method.updateGroup,
    request: () => ({ group: { uid: world.child }, updateMask: "nosuch" }),
    rest: ["PATCH", () => `/iam/v2/groups/${world.child}?updateMask=nosuch`, () => ({})],
    proto: ["update_mask"],
    json: ["updateMask"],
  },
  {
    method: IdentityProvidersService.method.createIdentityProvider,
    request: () => ({ parent: world.root, identityProvider: provider }),
    rest: ["POST", () => `/iam/v2beta1/identityProviders/${world.root}`, () => provider],
    proto: ["oidc.client_secret"],
    json: ["oidc.clientSecret"],
  },
  {
    method: RoleBindingsService.method.createRoleBinding,
    request: () => ({ parent: world.child, roleBinding: {} }),
    rest: ["POST", () => `/iam/v2beta1/roleBindings/${world.child}`, () => ({})],
    proto: ["identity_uid", "role_uid"],
    json: ["identityUid", "roleUid"],
  },
  {
    method: RoleBindingsService.method.batchCreateRoleBindings,
    request: () => ({ parent: world.child, roleUid: viewer, requests: [{ roleBinding: { roleUid: "other" } }] }),
    rest: [
      "POST",
      () => "/iam/v2beta1/roleBindings:batchCreate",
      () => ({ parent: world.child, roleUid: viewer, requests: [{ roleBinding: { roleUid: "other" } }] }),
    ],
    proto: ["requests[0].role_binding.role_uid"],
    json: ["requests[0].roleBinding.roleUid"],
  },
  {
    method: RoleBindings.method.createBatch,
    request: () => ({ parent: world.child, roleBindings: [] }),
    rest: ["POST", () => `/iam/v1/rolebindings/batch/${world.child}`, () => []],
    proto: ["role_bindings"],
    json: ["roleBindings"],
  },
  {
    method: GroupInvites.method.list,
    request: () => ({ group: "*" }),
    rest: ["GET", () => "/iam/v1/group_invites?group=*"],
    proto: ["group"],
    json: ["group"],
  },
  {
    // Its JSON has a name of its own.
    method: ReposService.method.createRepo,
    request: () => ({ parent: world.child, repo: { name: "r", sync_config: {} } }),
    rest: ["POST", () => `/registry/v2beta1/repos/${world.child}`, () => ({ name: "r", sync_config: {} })],
    proto: ["sync_config"],
    json: ["sync_config"],
  },
  {
    method: EventIdentities.method.updateMetadata,
    request: () => ({ onboardingQuestions: { companyName: "\u0001" } }),
    rest: ["PATCH", () => "/iam/v1/identities/metadata", () => ({ onboardingQuestions: { companyName: "\u0001" } })],
    proto: ["onboarding_questions.company_name"],
    json: ["onboardingQuestions.companyName"],
  },
  {
    method: SecurityTokenService.method.exchange,
    request: () => ({ aud: [world.url], identityProvider: "x", identity: world.child }),
    rest: ["POST", () => `/sts/exchange?aud=${world.url}&identity_provider=x&identity=${world.child}`],
    proto: ["identity_provider"],
    json: ["identityProvider"],
  },
];

async function rpcError(transport: Transport, method: DescMethodUnary, request: JsonObject): Promise<ConnectError> {
  const header = { authorization: `Bearer ${world.owner.token}` };
  try {
    await transport.unary(method, undefined, LIMIT_MS, header, create(method.input, fromJson(method.input, request)));
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error(`${method} succeeded`);
}

describe("an error names fields as its caller does", () => {
  for (const { method, request, rest, proto, json } of cases) {
    it(method.toString(), async () => {
      const [verb, path, body] = rest;
      const { json: status, text } = await restAs(world.url, world.owner.token, "")(verb, path(), body?.() as object);
      const { message, details } = (status ?? {}) as { message: string; details: readonly JsonObject[] };
      const violations = details?.flatMap((one) => (one.fieldViolations ?? []) as { field: string }[]);
      assert.deepEqual(
        violations?.map(({ field }) => field),
        json,
        `REST: ${text}`,
      );
      for (const [name, spelling, transport] of transports) {
        const error = await rpcError(transport, method, request());
        const fields = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
        assert.deepEqual(
          fields.map(({ field }) => field),
          spelling === "proto" ? proto : json,
          `${name}: ${error.message}`,
        );
        assert.equal(error.rawMessage, message, name);
      }
    });
  }
});
