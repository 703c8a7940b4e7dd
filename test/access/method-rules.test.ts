// The methods whose handlers authorize themselves have a rule in words, and the documentation has the same list.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { findMethodRule, methodRules } from "../../src/iam/access/method-rules.js";
import { readAuthRule } from "../../src/pipeline/method-table.js";
import { methods as platformMethods } from "../contract/iam-methods.js";

const selfAuthenticating = /\.Auth\.GetHeadlessSession$/;
const methods: readonly DescMethod[] = [
  ...platformMethods,
  ...[AccessService, AuditService, EventsService, SessionsService, Auth].flatMap((service) => service.methods),
];
const nameOf = ({ parent, name }: DescMethod) => `${parent.typeName}.${name}`;

/** Whether nothing but the handler decides who may call a method, or what it shows. */
function authorizesItself(method: DescMethod): boolean {
  if (selfAuthenticating.test(nameOf(method))) return false;
  const rule = readAuthRule(method);
  if (rule.mode !== "guarded" || rule.scope !== undefined) return false;
  // What lists show follows from their capabilities.
  const isList = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS && /^List/.test(method.name);
  return !(isList && rule.capabilities.length > 0) && !/\.PingService\.Ping$/.test(nameOf(method));
}

test("every method without a scope has a rule", () => {
  const unscoped = methods.filter(authorizesItself);
  assert.ok(unscoped.length > 30, `${unscoped.length}`);
  const without = unscoped.filter((method) => findMethodRule(method) === "").map(nameOf);
  assert.deepEqual(without, []);
});

// Where handlers check rights, and the rule that says so; none where the check is what the capabilities say.
const checks: Readonly<Record<string, string | undefined>> = {
  "audit/audit-v1.ts": "an event is NOT_FOUND",
  "events/events-v1.ts": undefined,
  "iam/account-associations/account-association.ts": "all rights of the service principals",
  "iam/bindings/bindings-v1.ts": "whose token must not be limited",
  "iam/group-invites/group-invite.ts": "all that the role grants",
  "iam/group-mappings/group-mapping.ts": "all that the role grants",
  // Quotas are counted where the parent allows it.
  "iam/groups/group.ts": undefined,
  "iam/groups/group-v2beta1.ts": "`groups.create` there",
  "iam/identities/identity-v2beta1.ts": "all rights of the identity",
  "iam/identity-providers/identity-provider-v2beta1.ts": "all rights of an owner",
  // What people do without an API token, or on the host.
  "iam/people/accept-invite.ts": undefined,
  "iam/people/directory-person.ts": undefined,
  "iam/identities/deactivation.ts": undefined,
  "iam/people/sign-in.ts": undefined,
  "iam/people/pending-bindings.ts": "whose token must not be limited",
  "iam/role-bindings/create-binding.ts": "all that the role grants",
  "iam/role-bindings/role-binding-v2beta1.ts": "by the operator only",
  "iam/role-bindings/temporary-bindings-v1.ts": "until then",
  "iam/roles/role-v2beta1.ts": "capabilities of the role",
  "iam/trust/trust-v1.ts": "all rights of the identity",
  "issuer/auth-v1.ts": "whose token must not be limited",
  "issuer/sessions-v1.ts": "whose token must not be limited",
  "registry/overlays/overlay-binding.ts": "`registry.overlays.list` at the overlay",
  "registry/repos/repo-source.ts": "able to pull from it",
  // A readme is left out of what is shown.
  "registry/repos/repo-v1.ts": undefined,
  "vulnerabilities/advisories/advisory-changes.ts": "advisories.approve",
};

test("every file whose handlers check rights has a rule, or a reason for none", () => {
  const calls =
    /\b(permissionDenied|notPermitted|requireRights\w*|requireGrantable|requireOwnersRights|requireNotOperatorRole|callerAt)\(|\.holds\(/;
  const own = /^(iam\/(access|operator)\/|iam\/rights\.ts|issuer\/(console|oauth|sts)\/|registry\/oci\/)/;
  const found = ["audit", "events", "iam", "issuer", "registry", "vulnerabilities"]
    .flatMap((folder) => readdirSync(join("src", folder), { recursive: true }).map((file) => `${folder}/${file}`))
    .filter((file) => file.endsWith(".ts") && !own.test(file))
    .filter((file) => calls.test(withoutImports(readFileSync(join("src", file), "utf8"))));
  assert.deepEqual(found.sort(), Object.keys(checks).sort());
  for (const rule of Object.values(checks)) {
    assert.ok(rule === undefined || methodRules.some((one) => one.rule.includes(rule)), rule);
  }
});

function withoutImports(source: string): string {
  return source.replaceAll(/^import [^;]*;$/gm, "");
}

test("every rule is about methods that are served", () => {
  const served = new Set(methods.map(nameOf));
  const named = methodRules.flatMap((rule) => rule.methods.map(nameOf));
  assert.deepEqual(
    named.filter((name) => !served.has(name)),
    [],
  );
});

test("the documentation lists the rules", () => {
  const page = readFileSync("docs/access.md", "utf8").replaceAll(/\s+/g, " ");
  for (const { rule, methods: ruled } of methodRules) {
    assert.ok(page.includes(rule), rule);
    for (const { parent, name } of ruled) assert.ok(page.includes(`${parent.name}.${name}`), `${parent.name}.${name}`);
  }
});
