// Which types of events can be emitted, and that what they say is a message of the published API and nothing else.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import {
  type CloudEvent,
  createCloudEvents,
  formatEventUuid,
  listEventTypes,
  parseEventUuid,
} from "../../src/events/cloud-event.js";
import { bindIdentity, unbindIdentity, verifyGroup } from "../../src/iam/operator/operate.js";
import { createOperatorRole } from "../../src/iam/operator/roles.js";
import { REGISTRY_PUSH, SENT_TYPES } from "../../src/kernel/audit-body.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { createMethodTable } from "../../src/pipeline/method-table.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { listStepsV2, type Made, stepsV1 } from "../audit/body-steps.js";
import { services } from "../contract/iam-methods.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";
import { PROJECT } from "../support/project.js";
import { insertScimToken } from "../support/scim.js";
import { buildContract, flatten, publishedTypes } from "./contract.js";

const methods = [...services.flatMap(({ desc, published = desc }) => published.methods), ...Auth.methods];
const events = createCloudEvents({
  methods,
  baseUrl: "https://api.example",
  registryHost: "registry.example",
  formatId: (id) => id.toString(16).padStart(32, "0"),
});

test("the types that can be emitted are the published ones, pushes, and those of directories", () => {
  assert.deepEqual(listEventTypes(methods), [...publishedTypes, REGISTRY_PUSH, ...SENT_TYPES].sort());
  for (const own of ["arbor.quota.set.v1", "dev.arbor.bindings.binding.accepted.v1"])
    assert.equal(events.isEvent({ type: own }), false);
  const internal = "dev.chainguard.api.iam.identity.metadata.updated.v1";
  assert.equal(events.isEvent({ type: internal }), false);
});

test("docs/events.md lists each of them", () => {
  const page = readFileSync(join(PROJECT, "docs", "events.md"), "utf8");
  const [, table = ""] = page.split("\n### Types\n");
  const listed = [...(table.split("\n## ")[0] ?? "").matchAll(/`([\w.{},]+\.v1)`/g)].flatMap(([, text = ""]) => {
    const [, before = "", names = "", after = ""] = /^(.*)\{(.*)\}(.*)$/.exec(text) ?? [undefined, text];
    return names.split(",").map((name) => before + name + after);
  });
  const full = listed.map((type) => (/^(?:dev|arbor)\./.test(type) ? type : `dev.chainguard.api.${type}`));
  assert.deepEqual(full.sort(), listEventTypes(methods));
});

test("ids are UUIDs with the digits of the id in the audit log", () => {
  const digits = "0123456789abcdef0123456789abcdef";
  assert.equal(formatEventUuid(digits), "01234567-89ab-cdef-0123-456789abcdef");
  assert.equal(parseEventUuid(formatEventUuid(digits)), digits);
  assert.equal(parseEventUuid(digits), digits);
  for (const text of ["", "x", digits.toUpperCase(), `${digits}0`, "0123456789ab-cdef-0123-456789abcdef"])
    assert.equal(parseEventUuid(text), undefined, text);
});

const contract = buildContract();

/** Decodes a body strictly, as published receivers do. */
function decode({ bodyType, data }: CloudEvent): unknown {
  // The published API has overlays in version 2beta1 alone.
  const published = bodyType.replace(/\.v2\.(Delete)?Overlay/, ".v2beta1.$1Overlay");
  const message = contract.getMessage(flatten(published));
  assert.ok(message, `the contract has no ${bodyType}`);
  const { actor, body, ...others } = JSON.parse(data) as { actor: object; body: JsonValue };
  assert.deepEqual(others, {});
  assert.deepEqual(Object.keys(actor), ["subject", "act"]);
  return fromJson(message, body, { ignoreUnknownFields: false });
}

test("control: a body with something of our own is not decoded", () => {
  const base = { id: "", type: "", source: "", subject: "", time: "", group: "", actor: "", identityProvider: "" };
  const group = (body: object) => ({
    ...{ ...base, bodyType: "chainguard.platform.iam.v2.Group" },
    data: JSON.stringify({ actor: { subject: "", act: {} }, body }),
  });
  decode(group({ uid: "x", name: "y" }));
  assert.throws(() => decode(group({ uid: "x", rank: 1 })), /rank/);
});

const versions = [
  ["v2beta1", listStepsV2("v2beta1")],
  ["v2", listStepsV2("v2")],
  ["v1", stepsV1],
] as const;
for (const [version, steps] of versions) {
  describe(`every change by ${version}`, () => {
    let world: IamWorld;
    const found: { readonly event: CloudEvent; readonly method: string }[] = [];
    before(async () => {
      world = await startIamWorld({ rootCreation: "users" });
      const made: Made = { org: world.root };
      const member = await world.harness.identity({ name: "Ann", email: "ann@acme.example" });
      await world.harness.bind((await world.harness.identity()).uid, "owner", world.root);
      const context = { ids: randomIds, nowMs: Date.now() };
      await world.write(async (tx) => {
        await tx.table(groupKind).update(world.root, { name: "acme.example" }, Date.now());
        await verifyGroup(tx, world.root, undefined, context);
        const needed = [...createMethodTable(services).values()].flatMap(({ auth }) =>
          auth.mode === "guarded" ? auth.capabilities.map(({ name }) => name) : [],
        );
        const operator = { name: "operator", description: "", capabilities: [...new Set(needed)] };
        const { uid: role } = await createOperatorRole(tx, operator, context);
        await bindIdentity(tx, { identity: world.owner.uid, role, group: world.root, internal: true }, context);
        const bound = { identity: member.uid, role: builtinRoleUid("viewer"), group: world.root };
        await unbindIdentity(tx, await bindIdentity(tx, bound, context), context);
      });
      for (const { method, request, keep, as } of steps) {
        if (/\/(SetScimEnabled|RegenerateScimToken)$/.test(method)) {
          await world.write((tx) => insertScimToken(tx, made.provider ?? assert.fail()));
        }
        const response = await fetch(`${world.url}/chainguard.platform.${method}`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${as === "member" ? member.token : world.owner.token}`,
            "content-type": "application/json",
          },
          body: JSON.stringify(request(made)),
        });
        const json = (await response.json()) as {
          uid?: string;
          id?: string;
          roleBindings?: { uid?: string; id?: string }[];
        };
        assert.equal(response.status, 200, `${method} ${JSON.stringify(json)}`);
        const one = json.roleBindings?.[0];
        if (keep !== undefined) made[keep] = json.uid ?? json.id ?? one?.uid ?? one?.id ?? "";
      }
      await world.write(async (tx) => {
        const rows = await tx.audit.listNewest(1_000);
        const bodies = await tx.audit.readBodies(rows);
        for (const row of rows.reverse()) {
          if (!events.isEvent(row)) continue;
          const event = events.build(row, bodies.get(row.id));
          assert.ok(typeof event !== "string", `${row.method}: ${event}`);
          found.push({ event, method: row.method });
        }
      });
    });
    after(() => world.stop());

    test("bodies are messages of the published API", () => {
      assert.ok(found.length > 25, `${found.length} events`);
      for (const { event, method } of found) {
        assert.doesNotThrow(() => decode(event), `${method} ${event.bodyType} ${event.data}`);
        const isHost = method === "arbor";
        const name = isHost ? ".v2." : version === "v1" ? "" : `.${version}.`;
        assert.ok(event.bodyType.includes(name), `${method}: ${event.bodyType}`);
      }
    });

    test("subjects, groups and sources are the published ones", () => {
      for (const { event, method } of found) {
        const { type, subject, group, source, identityProvider, data } = event;
        const [first = ""] = subject.split(",");
        // Overlays have no version 1.
        const collection =
          /^https:\/\/api\.example\/(?:(?:iam|events|registry|auth)\/v1\/\w+|registry\/v2\/overlay\w*)$/;
        assert.match(source, collection, `${type}: ${source}`);
        assert.match(first, /^[0-9a-f]{40}(?:\/[0-9a-f]{16})*$/, type);
        const parent = first.slice(0, Math.max(0, first.lastIndexOf("/")));
        const isOwn = /\.group\.(?:created|updated)|account_associations|terms/.test(type);
        const expected = isOwn ? first : /registry\.(?:tag|overlay\w*)\./.test(type) ? first.slice(0, 40) : parent;
        assert.equal(group, expected, type);
        assert.equal(identityProvider, type.includes("mappings") ? parent : "", type);
        const body = (JSON.parse(data) as { body: Record<string, unknown> }).body;
        if (/\.deleted\.v1$/.test(type) && Object.keys(body).length > 0) {
          assert.deepEqual(Object.values(body), [subject], method);
        }
        if (type.includes("group_invite.created")) {
          assert.deepEqual(
            Object.keys(body).sort(),
            version === "v1" ? ["expiration", "id"] : ["expirationTime", "uid"],
          );
        }
        assert.doesNotMatch(data, /planted-client-secret|clientSecret/);
      }
    });

    test("batches name what they changed", () => {
      const batches = found.filter(({ event }) => event.type.endsWith(".batch.v1"));
      assert.ok(batches.length >= 1);
      for (const { event } of batches) assert.ok(event.subject.length > 40, event.subject);
    });
  });
}
