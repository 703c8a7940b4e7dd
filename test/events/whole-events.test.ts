// Events and redeliveries have all that they need, whatever its size: those of the largest batches, of resources larger than the
// request that changed them, and of changes by other ways than the API. What older versions have not recorded is said, not sent.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { connectTo, eventVerifier, staticToken } from "../../src/client/index.js";
import { readState } from "../../src/events/delivery/control.js";
import { bindIdentity } from "../../src/iam/operator/operate.js";
import { createOperatorRole } from "../../src/iam/operator/roles.js";
import { BINDING_ACCEPTED } from "../../src/iam/people/pending-bindings.js";
import {
  canonicalize,
  findEventPart,
  formatBody,
  type JsonFields,
  MAX_PART_BYTES,
} from "../../src/kernel/audit-body.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import type { Tx } from "../../src/store/transaction.js";
import { auditRow } from "../audit/log-kit.js";
import { type Rest, restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";
import { waitUntil } from "../support/wait-until.js";
import { RECEIVER_SETTINGS, type Received, type Receiver, startReceiver } from "./receiver.js";

const viewer = builtinRoleUid("viewer");
/** The largest batch of deletions, and the longest name of a group of a directory. */
const MOST_MAPPINGS = 100;
const LONGEST_NAME = 256;
/** The largest batch of role bindings. */
const MOST_BINDINGS = 25;
const DELETED_BATCH = "dev.chainguard.api.iam.external_group_role_mappings.deleted.batch.v1";
const CREATED_BATCH = "dev.chainguard.api.iam.rolebindings.created.batch.v1";

let harness: Harness;
let receiver: Receiver;
let rest: Rest;
let token: string;
let group: string;
let owner: string;
let subscription: string;
before(async () => {
  harness = await startHarness(RECEIVER_SETTINGS);
  receiver = await startReceiver();
  ({ group, token, identity: owner } = await harness.organisation("whole.example"));
  rest = restAs(harness.url, token, "");
  subscription = String((await ok("POST", `/events/v2/subscriptions/${group}`, { sink: receiver.url })).uid);
});
after(async () => {
  receiver.close();
  await harness.stop();
});

async function ok(method: "POST" | "PUT", path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
  const { status, json, text } = await rest(method, path, body);
  assert.equal(status, 200, text);
  return json ?? {};
}

const inStore = <T>(unit: (tx: Tx) => Promise<T>) => harness.app.installation.store.write(unit);

/** Resolves to what has arrived of a type for a subject, and fails where the delivery says that it does not. */
async function arrived(type: string, isIt: (received: Received) => boolean = () => true, count = 1): Promise<Received> {
  const found = await waitUntil(async () => {
    const all = receiver.received.filter((received) => received.event.type === type && isIt(received));
    const { state, dead } = await inStore((tx) => readState(tx, subscription));
    assert.deepEqual([state, dead], ["live", 0], "the sink was reached");
    return all.length >= count && all;
  }, 60_000);
  return found.at(-1) ?? assert.fail();
}

/** Resolves when what was sent is noted as delivered. */
const settled = () =>
  waitUntil(async () => {
    const { seq, headSeq, waiting } = await inStore((tx) => readState(tx, subscription));
    return seq === headSeq && waiting === 0;
  }, 60_000);

/** The newest row of a type, with its body. */
async function newest(type: string) {
  return inStore(async (tx) => {
    const [row] = await tx.audit.listNewest(1, group, { type });
    assert.ok(row, `no row of ${type}`);
    return {
      row,
      body: JSON.parse((await tx.audit.readBodies([row])).get(row.id) ?? "{}") as Record<string, JsonFields>,
    };
  });
}

async function createMappings(provider: string, count: number, externalName: string): Promise<string[]> {
  const uids: string[] = [];
  for (let i = 0; i < count; i++) {
    const externalGroupId = `${i} ${externalName}`.slice(0, LONGEST_NAME);
    const { uid } = await ok("POST", `/iam/v2/externalGroupRoleMappings/${provider}`, {
      externalGroupId,
      roleUid: viewer,
      scope: group,
    });
    uids.push(String(uid));
  }
  return uids;
}

async function createProvider(): Promise<string> {
  const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "secret" };
  return String(
    (await ok("POST", `/iam/v2/identityProviders/${group}`, { name: "login", defaultRole: viewer, oidc })).uid,
  );
}

/** The bytes of the header fields of a request. */
const headerBytes = ({ headers }: Received) =>
  Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + String(value).length + 4, 0);

describe("a batch", () => {
  const versions = [
    [
      "version 2",
      "/iam/v2/externalGroupRoleMappings:batchDelete",
      (parent: string, names: string[]) => ({ parent, names }),
    ],
    [
      "version 1",
      "/iam/v1/externalGroupRoleMappings:batchDelete",
      (parentId: string, ids: string[]) => ({ parentId, ids }),
    ],
  ] as const;
  for (const [version, path, request] of versions) {
    test(`of as many deletions as are allowed names all of them, by ${version}, also when it is delivered again`, async () => {
      const provider = await createProvider();
      const names = await createMappings(provider, MOST_MAPPINGS, "木".repeat(LONGEST_NAME));
      await ok("POST", path, request(provider, names));
      const isIt = ({ event }: Received) => JSON.stringify(event.data).includes(provider);
      const received = await arrived(DELETED_BATCH, isIt);
      const { event, headers } = received;
      assert.deepEqual(event.data?.body, request(provider, names));
      assert.deepEqual([event.subject, event.identityprovider, event.group], [provider, provider, provider]);
      assert.ok(Buffer.byteLength(String(headers["ce-subject"])) < 4_096);
      assert.ok(headerBytes(received) < 8_192, `${headerBytes(received)} bytes`);

      // The log has them as well, above the bound of other parts.
      const { row, body } = await newest(DELETED_BATCH);
      const listed = Object.values(body.before ?? {}).find(Array.isArray) as readonly { uid?: string; id?: string }[];
      assert.deepEqual(
        listed.map(({ uid, id = uid }) => id),
        names,
      );
      assert.ok(row.bodyBytes > MAX_PART_BYTES, `${row.bodyBytes} bytes`);

      await settled();
      await ok("POST", "/events/v1/deliveries:redeliver", { subscription, eventId: event.id });
      const again = await arrived(DELETED_BATCH, isIt, 2);
      assert.deepEqual([again.event.id, again.data.toString()], [event.id, received.data.toString()]);
      assert.notEqual(again.token, received.token);
    });
  }

  test("of a few names them in its subject", async () => {
    const provider = await createProvider();
    const names = await createMappings(provider, 3, "few");
    await ok("POST", "/iam/v2/externalGroupRoleMappings:batchDelete", { parent: provider, names });
    const { event } = await arrived(DELETED_BATCH, ({ event: { subject } }) => subject?.includes(provider) === true);
    assert.deepEqual([event.subject, event.group, event.identityprovider], [names.join(","), provider, provider]);
  });

  test("of as many bindings as are allowed, deep in the tree, has a subject that servers accept", async () => {
    let deepest = group;
    for (let depth = 0; depth < 45; depth++)
      deepest = String((await ok("POST", `/iam/v2/groups/${deepest}`, { name: `g${depth}` })).uid);
    const requests = await Promise.all(
      Array.from({ length: MOST_BINDINGS }, async () => {
        const { uid } = await harness.identity({}, group);
        return { parent: deepest, roleBinding: { identityUid: uid, roleUid: viewer } };
      }),
    );
    const { roleBindings } = await ok("POST", "/iam/v2/roleBindings:batchCreate", { parent: deepest, requests });
    const uids = (roleBindings as readonly { uid: string }[]).map(({ uid }) => uid);
    // Without a bound the subject alone would be longer than all header fields may be together.
    assert.ok(uids.join().length > 16_384);
    const { event } = await arrived(CREATED_BATCH);
    assert.equal(event.subject, deepest);
    const listed = event.data?.body.roleBindings as readonly { uid: string }[];
    assert.deepEqual(
      listed.map(({ uid }) => uid),
      uids,
    );
  });
});

test("a resource whose JSON is larger than any request is in its event", async () => {
  // Readmes are written by operators.
  await inStore(async (tx) => {
    const context = { ids: randomIds, nowMs: Date.now() };
    const operator = { name: "operator", description: "", capabilities: ["repo.update", "repo.internal.admin"] };
    const { uid: role } = await createOperatorRole(tx, operator, context);
    await bindIdentity(tx, { identity: owner, role, group, internal: true }, context);
  });
  const { uid } = await ok("POST", `/registry/v2beta1/repos/${group}`, { name: "large" });
  // Of a line feed JSON makes two bytes, so its JSON is larger than the largest request. Over gRPC it fits.
  const content = "\n".repeat(256 * 1024);
  const connection = connectTo({ baseUrl: harness.url, token: staticToken(token) });
  try {
    const repos = connection.client(ReposService);
    await repos.updateRepoReadme({ repoReadme: { uid: String(uid), content }, updateMask: { paths: ["content"] } });
  } finally {
    connection.close();
  }
  const type = "dev.chainguard.api.platform.registry.repo.updated.v1";
  const received = await arrived(type);
  assert.equal(received.event.data?.body.content, content);
  const verify = eventVerifier({ issuer: harness.url, group, subscription, requireAttributes: true });
  assert.equal((await verify(received.headers, received.data)).subject, uid);
});

test("the log names all bindings that a person has accepted at once", async () => {
  const { uid: identityUid, token: theirs } = await harness.identity();
  const parents: string[] = [];
  for (let i = 0; i < 60; i++)
    parents.push(String((await ok("POST", `/iam/v2/groups/${group}`, { name: `p${i}` })).uid));
  const bound: string[] = [];
  for (const parent of parents) {
    const { uid } = await ok("POST", `/iam/v2/roleBindings/${parent}`, { identityUid, roleUid: viewer });
    bound.push(String(uid));
  }
  await restAs(harness.url, theirs, "")("GET", `/iam/v2/groups/${parents[0]}`);
  const { row, body } = await waitUntil(async () => {
    const rows = await inStore((tx) => tx.audit.listNewest(1, group, { type: BINDING_ACCEPTED }));
    return rows.length > 0 && newest(BINDING_ACCEPTED);
  }, 60_000);
  const listed = body.after?.roleBindings as readonly { uid: string }[];
  assert.deepEqual(listed.map(({ uid }) => uid).sort(), bound.sort());
  assert.ok(row.bodyBytes > MAX_PART_BYTES, `${row.bodyBytes} bytes`);
});

describe("of an older version", () => {
  // What formatBody wrote before a batch was whole, and before bodies.
  const digest = { sha256: "x".repeat(43), fields: ["externalGroupRoleMappings", "parent"] };
  const withDigest = (part: string, type: string) =>
    canonicalize({ [`${part}Digest`]: digest, salt: randomBytes(12).toString("base64url"), type });
  const batch = "chainguard.platform.iam.v2.BatchDeleteExternalGroupRoleMappingsResponse";
  const method = "/chainguard.platform.iam.v2.ExternalGroupRoleMappingsService/BatchDeleteExternalGroupRoleMappings";

  test("an event that the log lacks a part of is not sent, is listed with the reason, and others are sent", async () => {
    const provider = `${group}/0123456789abcdef`;
    const sinceMs = Date.now();
    const lacking = [
      { type: DELETED_BATCH, method, subjectUid: provider, body: withDigest("before", batch) },
      {
        ...{ type: "dev.chainguard.api.iam.roles.updated.v1", method: "arbor", subjectUid: provider },
        body: withDigest("after", "chainguard.platform.iam.v2.Role"),
      },
      { type: "dev.chainguard.api.iam.group.updated.v1", method: "arbor", subjectUid: provider },
    ];
    // The deletion of one resource is told by its subject, and needs no body.
    const whole = {
      ...{ type: "dev.chainguard.api.iam.roles.deleted.v1", method: "arbor", subjectUid: provider },
      body: withDigest("before", "chainguard.platform.iam.v2.Role"),
    };
    await inStore(async (tx) => {
      for (const values of [...lacking, whole]) await tx.audit.append(auditRow(group, { ...values, timeMs: sinceMs }));
    });
    const { event } = await waitUntil(
      () => receiver.received.find(({ event: { type } }) => type === whole.type),
      60_000,
    );
    assert.deepEqual(event.data?.body, { uid: provider });
    const dead = await waitUntil(async () => {
      const { deliveries } = await listDead();
      return deliveries.length === lacking.length && deliveries;
    }, 60_000);
    assert.deepEqual(
      dead.map(({ type, lastError }) => [type, lastError]),
      [
        [DELETED_BATCH, "the version that made the change has recorded only a digest of its body"],
        [lacking[1]?.type, "the version that made the change has recorded only a digest of its body"],
        [lacking[2]?.type, "the version that made the change has recorded no body of it"],
      ],
    );
    for (const { id } of dead) {
      const { status, json } = await rest("POST", "/events/v1/deliveries:redeliver", { subscription, eventId: id });
      assert.equal(status, 400, JSON.stringify(json));
      assert.match(String(json?.message), /the event cannot be sent: the version that made the change has recorded/);
    }
    const sent = receiver.received.filter(({ event: { subject } }) => subject === provider);
    assert.deepEqual(
      sent.map(({ event: { type } }) => type),
      [whole.type],
    );

    // Since a time all is sent again that can be, and the rest is said again.
    await ok("POST", "/events/v1/deliveries:redeliver", { subscription, since: new Date(sinceMs).toISOString() });
    await waitUntil(() => receiver.received.filter(({ event: { type } }) => type === whole.type).length === 2, 60_000);
    await waitUntil(async () => (await listDead()).deliveries.length === lacking.length, 60_000);
  });

  const listDead = async () => {
    const { json, text } = await rest("GET", `/events/v1/deliveries?subscription=${subscription}&status=STATUS_DEAD`);
    assert.ok(json, text);
    return json as unknown as { deliveries: readonly { id: string; type: string; lastError: string }[] };
  };
});

test("the part that an event is built from is stored whole, and every list of resources", () => {
  const large = { text: "x".repeat(2 * MAX_PART_BYTES) };
  const list = { items: Array.from({ length: 500 }, (_, i) => ({ uid: i.toString(16).padStart(40, "0") })) };
  const partsOf = (eventType: string, part: JsonFields) =>
    Object.keys(JSON.parse(formatBody({ type: "t", before: part, after: part }, eventType)) as object).filter(
      (name) => name !== "salt" && name !== "type",
    );
  const cases: readonly (readonly [eventType: string, needed: string | undefined])[] = [
    ["dev.chainguard.api.iam.group.created.v1", "after"],
    ["dev.chainguard.api.iam.rolebindings.created.batch.v1", "after"],
    ["dev.chainguard.registry.push.v1", "after"],
    ["dev.chainguard.api.iam.roles.deleted.v1", undefined],
    [DELETED_BATCH, "before"],
    ["arbor.quota.set.v1", undefined],
    ["chainguard.platform.registry.Registry.CreateDeployment", undefined],
  ];
  for (const [eventType, needed] of cases) {
    assert.equal(findEventPart(eventType), needed, eventType);
    const expected = ["after", "before"].map((name) => (name === needed ? name : `${name}Digest`));
    assert.deepEqual(partsOf(eventType, large), expected, eventType);
    assert.deepEqual(partsOf(eventType, list), ["after", "before"], eventType);
  }
});
