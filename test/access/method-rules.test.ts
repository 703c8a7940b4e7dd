// The methods whose handlers authorize themselves have a rule in words, and the documentation has the same list.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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

test("every rule is about methods that are served", () => {
  const served = new Set(methods.map(nameOf));
  const named = methodRules.flatMap((rule) => rule.methods.map(nameOf));
  assert.deepEqual(
    named.filter((name) => !served.has(name)),
    [],
  );
  assert.equal(new Set(named).size, named.length);
});

test("the documentation lists the rules", () => {
  const page = readFileSync("docs/access.md", "utf8").replaceAll(/\s+/g, " ");
  for (const { rule, methods: ruled } of methodRules) {
    assert.ok(page.includes(rule), rule);
    for (const { parent, name } of ruled) assert.ok(page.includes(`${parent.name}.${name}`), `${parent.name}.${name}`);
  }
});
