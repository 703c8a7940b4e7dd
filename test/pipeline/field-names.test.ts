// The paths of fields in errors, and that the source names no field which no request has.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { DescMessage } from "@bufbuild/protobuf";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { CreateIdentityRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { BatchCreateRoleBindingsRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { CreateRepoRequestSchema } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { invalidArgument, permissionDenied } from "../../src/kernel/errors.js";
import { spellFieldPath, withFieldSpelling } from "../../src/pipeline/field-names.js";
import { services } from "../contract/iam-methods.js";

const paths: readonly (readonly [desc: DescMessage, json: string, proto: string | undefined, reason: string])[] = [
  [BatchCreateRoleBindingsRequestSchema, "roleUid", "role_uid", "a field"],
  [BatchCreateRoleBindingsRequestSchema, "requests[3]", "requests[3]", "an element"],
  [
    BatchCreateRoleBindingsRequestSchema,
    "requests[3].roleBinding.roleUid",
    "requests[3].role_binding.role_uid",
    "deep",
  ],
  [CreateIdentityRequestSchema, "identity.claimMatch.issuerPattern", "identity.claim_match.issuer_pattern", "a member"],
  [CreateIdentityRequestSchema, "claimMatch.issuer", "claim_match.issuer", "from the resource on"],
  [
    CreateIdentityRequestSchema,
    "claimMatch.claims.aB.c",
    "claim_match.claims.aB.c",
    "the key of a map is the caller's",
  ],
  [CreateRepoRequestSchema, "sync_config.source", "sync_config.source", "a name in JSON that the proto sets"],
  [CreateRepoRequestSchema, "syncConfig", undefined, "and no other"],
  [CreateIdentityRequestSchema, "relationship", "relationship", "a oneof"],
  [CreateIdentityRequestSchema, "body", undefined, "no field"],
  [CreateIdentityRequestSchema, "name.first", undefined, "nothing is within a text"],
  [CreateIdentityRequestSchema, "", undefined, "nothing"],
];
for (const [desc, json, proto, reason] of paths) {
  test(`${json} of ${desc.name}: ${reason}`, () => {
    assert.equal(spellFieldPath(desc, json, "proto"), proto);
    assert.equal(spellFieldPath(desc, json, "json"), proto && json);
    assert.equal(proto && spellFieldPath(desc, proto, "json"), proto && json);
  });
}

test("only the fields of a BadRequest change, and nothing of other errors", () => {
  const violation = (field: string) => ({ field, subject: "roleUid", rule: "is required" });
  const error = invalidArgument(violation("roleUid"), violation("body"));
  const spelled = withFieldSpelling(error, BatchCreateRoleBindingsRequestSchema, "proto");
  const expected = invalidArgument(violation("role_uid"), violation("body"));
  assert.deepEqual((spelled as typeof error).details, expected.details);
  assert.equal((spelled as typeof error).message, error.message);
  for (const other of [permissionDenied("roleUid"), new TypeError("roleUid")])
    assert.equal(withFieldSpelling(other, BatchCreateRoleBindingsRequestSchema, "proto"), other);
});

/** Fields that errors name and no method has, by the files or folders that do. */
const elsewhere: Readonly<Record<string, string>> = {
  "issuer/console": "the body as a whole",
  "issuer/oauth": "parameters of OAuth",
  "registry/oci": "requests of a container registry",
  "vulnerabilities/osv": "records of OSV",
  "iam/operator": "commands of the operator",
  "iam/people/owner-invite.ts": "a command of the operator",
  "transport/http": "the body as a whole",
  "transport/protocol": "the body as a whole",
};

test("every field that the source names is one of a request, as its JSON spells it", () => {
  const inputs = [
    ...services.map(({ desc }) => desc),
    SecurityTokenService,
    Auth,
    AccessService,
    AuditService,
    EventsService,
    SessionsService,
  ].flatMap(({ methods }) => methods.map(({ input }) => input));
  const unused = new Set(Object.keys(elsewhere));
  const found: string[] = [];
  let count = 0;
  for (const { file, field } of listNamedFields()) {
    count++;
    if (inputs.some((input) => spellFieldPath(input, field, "json") === field)) continue;
    const folder = Object.keys(elsewhere).find((one) => file === one || file.startsWith(`${one}/`));
    if (folder === undefined) found.push(`${file}: ${field}`);
    else unused.delete(folder);
  }
  assert.ok(count > 60, `only ${count} fields`);
  assert.deepEqual(found, []);
  assert.deepEqual([...unused], []);
});

/** The text of a rule, where a violation is made. */
const RULE =
  /\b(?:rule(?::| =) |breakRule\((?:`[^`]*`|\w+), |addViolation\((?:"[^"]*"|`[^`]*`|\w+), )["`]([^"`]*)["`]/g;

// A view renames what errors name as data. A name within a text would stay, and mislead the callers of version 1.
test("no rule names a field in its text", () => {
  const found: string[] = [];
  let count = 0;
  for (const { file, text } of listSources()) {
    for (const [, rule = ""] of text.matchAll(RULE)) {
      count++;
      const words = rule.replace(/\$\{[^}]*\}|\^\S+/g, "").split(/[^\w.]+/);
      for (const word of words) if (/^[a-z]+[A-Z]/.test(word)) found.push(`${file}: ${word}`);
    }
  }
  assert.ok(count > 150, `only ${count} rules`);
  assert.deepEqual(found, []);
});

function* listSources(): Iterable<{ file: string; text: string }> {
  for (const folder of [
    "iam",
    "registry",
    "vulnerabilities",
    "events",
    "issuer",
    "pipeline",
    "audit",
    "kernel",
    "transport",
  ]) {
    for (const name of readdirSync(join("src", folder), { recursive: true, encoding: "utf8" }))
      if (name.endsWith(".ts"))
        yield { file: join(folder, name), text: readFileSync(join("src", folder, name), "utf8") };
  }
}

function* listNamedFields(): Iterable<{ file: string; field: string }> {
  for (const { file, text } of listSources()) {
    // The order of a list has a field as well.
    for (const [whole, field = ""] of text.matchAll(/\bfield(?:: |, | = )"([^" ]+)"[^}\n]*/g))
      if (!/descending/.test(whole)) yield { file, field };
  }
}
