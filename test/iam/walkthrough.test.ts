// A walkthrough: a group, an identity in it, a binding of that
// identity to the built-in viewer, and the clean-up in its order.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";
import { restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";

const VIEWER = "63921b2c44617e3f2603851537be0123af4a57d7";
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const claimMatch = { issuer: "https://token.actions.example", subject: "repo:example/app:ref:refs/heads/main" };

let harness: Harness;
let org: { readonly group: string; readonly token: string };

before(async () => {
  harness = await startHarness();
  org = await harness.organisation("example");
});
after(() => harness.stop());

test("over REST", async () => {
  const rest = restAs(harness.url, org.token);
  const withoutTimes = (json: unknown, ...times: readonly string[]) => {
    const { uid, ...rest } = json as Record<string, unknown>;
    for (const time of times) {
      assert.match(String(rest[time]), TIME, time);
      delete rest[time];
    }
    return { uid: String(uid), rest };
  };

  const group = withoutTimes(
    (await rest("POST", `/groups/${org.group}`, { name: "demo", description: "a demo" })).json,
    "createTime",
    "updateTime",
  );
  const made = await rest("POST", `/identities/${group.uid}`, { name: "ci", description: "builds", claimMatch });
  const identity = withoutTimes(made.json, "createTime", "updateTime", "lastSeenTime");
  assert.match(identity.uid, new RegExp(`^${group.uid}/[0-9a-f]{16}$`));
  assert.deepEqual(identity.rest, { name: "ci", description: "builds", claimMatch });

  const roles = await rest("GET", "/roles?name=viewer");
  const [viewer, ...others] = (roles.json?.roles ?? []) as { uid: string; name: string; description: string }[];
  assert.ok(viewer);
  assert.deepEqual(
    [viewer.uid, viewer.name, viewer.description, others.length],
    [VIEWER, "viewer", "Viewer Role (built-in)", 0],
  );
  assert.deepEqual([roles.json?.totalCount, roles.json?.skipped], ["1", 0]);

  const binding = withoutTimes(
    (await rest("POST", `/roleBindings/${group.uid}`, { identityUid: identity.uid, roleUid: viewer.uid })).json,
    "createTime",
  );
  assert.match(binding.uid, new RegExp(`^${group.uid}/[0-9a-f]{16}$`));
  assert.deepEqual(binding.rest, {
    identity: { uid: identity.uid, name: "ci", description: "builds", ...claimMatch },
    group: { uid: group.uid, name: "demo", description: "a demo" },
    role: { uid: VIEWER, name: "viewer", description: "Viewer Role (built-in)" },
  });

  for (const path of [`/roleBindings/${binding.uid}`, `/identities/${identity.uid}`, `/groups/${group.uid}`]) {
    const { status, text } = await rest("DELETE", path);
    assert.deepEqual([status, text], [200, ""], path);
  }
  assert.equal((await rest("GET", `/groups/${group.uid}`)).status, 404);
});

test("over gRPC, with a client that shares nothing with the service", async () => {
  const prefix = "chainguard.platform.iam.v2beta1";
  const files = ["groups", "identities", "roles", "role_bindings"].map(
    (name) => `chainguard/platform/iam/v2beta1/${name}.proto`,
  );
  const protos = loadSync(files, {
    includeDirs: ["proto", "node_modules/google-proto-files"],
    longs: String,
    enums: String,
  });
  const client = new grpc.Client(new URL(harness.url).host, grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${org.token}`);
  // biome-ignore lint/suspicious/noExplicitAny: what the loader makes of messages has no types.
  const call = (service: string, method: string, request: object): Promise<any> => {
    const wire = (protos[`${prefix}.${service}Service`] as ServiceDefinition)[method];
    assert.ok(wire);
    const { path, requestSerialize, responseDeserialize } = wire;
    return new Promise((resolve, reject) => {
      const callback = (error: grpc.ServiceError | null, response?: object) =>
        error ? reject(error) : resolve(response);
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, callback);
    });
  };

  const group = await call("Groups", "CreateGroup", { parent: org.group, group: { name: "demo" } });
  const identity = await call("Identities", "CreateIdentity", {
    parent: group.uid,
    identity: { name: "ci", claimMatch },
  });
  assert.deepEqual([identity.claimMatch.issuer, identity.claimMatch.subject], [claimMatch.issuer, claimMatch.subject]);
  const { roles, totalCount } = await call("Roles", "ListRoles", { name: "viewer" });
  assert.deepEqual([roles.length, roles[0].uid, totalCount], [1, VIEWER, "1"]);
  const roleBinding = { identityUid: identity.uid, roleUid: VIEWER };
  const binding = await call("RoleBindings", "CreateRoleBinding", { parent: group.uid, roleBinding });
  const { uid, name, issuer, subject } = binding.identity;
  assert.deepEqual({ uid, name, issuer, subject }, { uid: identity.uid, name: "ci", ...claimMatch });
  assert.deepEqual(
    [binding.group.name, binding.role.name, binding.role.description],
    ["demo", "viewer", "Viewer Role (built-in)"],
  );

  await assert.rejects(call("Groups", "DeleteGroup", { uid: group.uid }), { code: grpc.status.FAILED_PRECONDITION });
  await call("RoleBindings", "DeleteRoleBinding", { uid: binding.uid });
  await call("Identities", "DeleteIdentity", { uid: identity.uid });
  await call("Groups", "DeleteGroup", { uid: group.uid });
  await assert.rejects(call("Groups", "GetGroup", { uid: group.uid }), { code: grpc.status.NOT_FOUND });
  client.close();
});
