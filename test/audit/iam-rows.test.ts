// Every method that changes something leaves one row that says who changed what.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { decodeJwt } from "jose";
import { createPlatformServices } from "../../src/app/services.js";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { rootOf } from "../../src/kernel/uidp.js";
import { createMethodTable, type UnaryEntry } from "../../src/pipeline/method-table.js";
import type { StoredAuditRow } from "../../src/store/tables/audit.js";
import type { Tx } from "../../src/store/transaction.js";
import { isUnavailable } from "../contract/iam-methods.js";
import { type Harness, startHarness } from "../support/harness.js";
import { insertScimToken } from "../support/scim.js";

type Json = Readonly<Record<string, unknown>>;

/** What earlier steps made, by name. */
type Made = Record<string, string>;

interface Step {
  readonly method: string;
  readonly request: (made: Made) => object;
  /** Who calls; the owner of the organisation unless said otherwise. */
  readonly as?: "member";
  /** The name of what is changed: that of something made before, or of what this step makes. */
  readonly subject: string;
  /** What later steps need of the response. */
  readonly keep?: (response: Json) => Made;
  /** Stores what no method stores. */
  readonly insert?: (tx: Tx, made: Made) => Promise<unknown>;
}

const [viewer, editor] = [builtinRoleUid("viewer"), builtinRoleUid("editor")];
const uid = (name: string) => (response: Json) => ({ [name]: String(response.uid) });
const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "secret" };
const claimMatch = { issuer: "https://issuer.example", subject: "s", audience: "a" };
const scope = (made: Made) => ({ identityProviderUid: made.provider });
const mapping = (made: Made, externalGroupId: string) => ({
  parent: made.provider,
  externalGroupRoleMapping: { externalGroupId, roleUid: viewer, scope: made.org },
});

const steps: readonly Step[] = [
  {
    method: "CreateGroup",
    request: ({ org }) => ({ parent: org, group: { name: "team" } }),
    subject: "team",
    keep: uid("team"),
  },
  { method: "CreateGroup", request: () => ({ group: { name: "new.example" } }), subject: "root", keep: uid("root") },
  { method: "UpdateGroup", request: ({ team }) => ({ group: { uid: team, description: "d" } }), subject: "team" },
  { method: "RequestGroupAccess", request: ({ org }) => ({ groupUid: org }), as: "member", subject: "org" },
  {
    method: "CreateIdentity",
    request: ({ team }) => ({ parent: team, identity: { name: "bot", claimMatch } }),
    subject: "bot",
    keep: uid("bot"),
  },
  { method: "UpdateIdentity", request: ({ bot }) => ({ identity: { uid: bot, description: "d" } }), subject: "bot" },
  {
    method: "UpdateIdentityMetadata",
    request: () => ({ identityMetadata: { company: "Acme" } }),
    as: "member",
    subject: "member",
  },
  {
    method: "CreateRole",
    request: ({ team }) => ({ parent: team, role: { name: "reader", capabilities: ["CAP_IAM_GROUPS_LIST"] } }),
    subject: "role",
    keep: uid("role"),
  },
  { method: "UpdateRole", request: ({ role }) => ({ role: { uid: role, description: "d" } }), subject: "role" },
  {
    method: "CreateRoleBinding",
    request: ({ team, bot }) => ({ parent: team, roleBinding: { identityUid: bot, roleUid: viewer } }),
    subject: "binding",
    keep: uid("binding"),
  },
  {
    method: "UpdateRoleBinding",
    request: ({ binding }) => ({ roleBinding: { uid: binding, roleUid: editor } }),
    subject: "binding",
  },
  {
    method: "BatchCreateRoleBindings",
    request: ({ team, bot, role }) => ({
      parent: team,
      requests: [
        { parent: team, roleBinding: { identityUid: bot, roleUid: role } },
        { parent: team, roleBinding: { identityUid: bot, roleUid: viewer } },
      ],
    }),
    subject: "team",
    keep: ({ roleBindings }) => {
      const [first, second] = roleBindings as readonly { uid: string }[];
      return { second: first?.uid ?? "", third: second?.uid ?? "" };
    },
  },
  {
    method: "CreateIdentityProvider",
    request: ({ org }) => ({ parent: org, identityProvider: { name: "login", defaultRole: viewer, oidc } }),
    subject: "provider",
    keep: uid("provider"),
  },
  {
    method: "UpdateIdentityProvider",
    request: ({ provider }) => ({ identityProvider: { uid: provider, description: "d" } }),
    subject: "provider",
  },
  {
    method: "SetScimEnabled",
    insert: (tx, { provider = "" }) => insertScimToken(tx, provider),
    request: (made) => ({ ...scope(made), enabled: true, etag: "etag" }),
    subject: "provider",
  },
  { method: "RevokeScimToken", request: scope, subject: "provider" },
  {
    method: "CreateExternalGroupRoleMapping",
    request: (made) => mapping(made, "one"),
    subject: "mapping",
    keep: uid("mapping"),
  },
  {
    method: "CreateExternalGroupRoleMapping",
    request: (made) => mapping(made, "two"),
    subject: "mapping2",
    keep: uid("mapping2"),
  },
  { method: "DeleteExternalGroupRoleMapping", request: ({ mapping: m }) => ({ uid: m }), subject: "mapping" },
  {
    method: "BatchDeleteExternalGroupRoleMappings",
    request: ({ provider, mapping2 }) => ({ parent: provider, names: [mapping2] }),
    subject: "provider",
  },
  { method: "DeleteIdentityProvider", request: ({ provider }) => ({ uid: provider }), subject: "provider" },
  {
    method: "CreateAccountAssociation",
    request: ({ team }) => ({ parent: team, accountAssociation: { name: "a", amazon: { account: "123456789012" } } }),
    subject: "team",
  },
  {
    method: "UpdateAccountAssociation",
    request: ({ team }) => ({ accountAssociation: { uid: team, description: "d" } }),
    subject: "team",
  },
  { method: "DeleteAccountAssociation", request: ({ team }) => ({ uid: team }), subject: "team" },
  {
    method: "CreateGroupInvite",
    request: ({ team }) => ({ parent: team, groupInvite: { roleUid: viewer, ttl: "60s" } }),
    subject: "invite",
    keep: uid("invite"),
  },
  {
    method: "UpdateGroupInvite",
    request: ({ invite }) => ({ groupInvite: { uid: invite, ttl: "90s" } }),
    subject: "invite",
  },
  { method: "DeleteGroupInvite", request: ({ invite }) => ({ uid: invite }), subject: "invite" },
  { method: "AcceptTerms", request: ({ org }) => ({ group: org, documentIds: ["doc"] }), subject: "org" },
  ...["binding", "second", "third"].map((name) => ({
    method: "DeleteRoleBinding",
    request: (made: Made) => ({ uid: made[name] }),
    subject: name,
  })),
  { method: "DeleteRole", request: ({ role }) => ({ uid: role }), subject: "role" },
  { method: "DeleteIdentity", request: ({ bot }) => ({ uid: bot }), subject: "bot" },
  { method: "DeleteGroup", request: ({ team }) => ({ uid: team }), subject: "team" },
];

// Of the services only the declarations are looked at. What version 1 changes, it changes by these.
function mutationsOf(version: string): ReadonlyMap<string, UnaryEntry> {
  const mutations = new Map<string, UnaryEntry>();
  for (const entry of createMethodTable(
    createPlatformServices({} as Parameters<typeof createPlatformServices>[0]),
  ).values()) {
    const ofVersion = entry.desc.parent.file.proto.package === `chainguard.platform.iam.${version}`;
    const isServed = entry.kind === "unary" && !isUnavailable(entry.desc as DescMethodUnary);
    if (ofVersion && isServed && entry.access === "write") mutations.set(entry.desc.name, entry);
  }
  return mutations;
}

describe("audit rows of version 2beta1", () => leavesRows("v2beta1"));
describe("audit rows of version 2", () => leavesRows("v2"));

function leavesRows(version: string): void {
  const mutations = mutationsOf(version);
  let harness: Harness;
  const made: Made = {};
  const callers: Record<string, { uid: string; token: string; name: string }> = {};

  before(async () => {
    harness = await startHarness();
    const org = await harness.organisation("acme.example");
    made.org = org.group;
    callers.owner = { uid: org.identity, token: org.token, name: "owner" };
    // A person without rights, whom the organisation may let in.
    const ann = { name: "Ann", email: "ann@acme.example", issuer: "https://login.example", subject: "ann" };
    callers.member = { name: ann.name, ...(await harness.identity(ann)) };
    made.member = callers.member.uid;
    // A directory may be let in only where two people own the organisation.
    await harness.bind((await harness.identity()).uid, "owner", org.group);
    const context = { ids: randomIds, nowMs: Date.now() };
    await harness.app.installation.store.write((tx) => verifyGroup(tx, org.group, undefined, context));
  });
  after(() => harness.stop());

  const rows = () => harness.app.installation.store.read((tx) => tx.audit.listNewest(1_000));

  async function call(entry: UnaryEntry, request: object, token: string, requestId: string): Promise<Response> {
    return fetch(`${harness.url}${entry.path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "x-request-id": requestId },
      body: JSON.stringify(request),
    });
  }

  test("no method that changes something is left out here", () => {
    assert.deepEqual([...new Set(steps.map(({ method }) => method))].sort(), [...mutations.keys()].sort());
  });

  for (const [i, { method, request, as = "owner", subject, keep, insert }] of steps.entries()) {
    test(`${i + 1}. ${method}`, async () => {
      const entry = mutations.get(method);
      const caller = callers[as];
      assert.ok(entry && caller);
      if (insert) await harness.app.installation.store.write((tx) => insert(tx, made));
      const before = await rows();
      const requestId = `req-${i}`;
      const response = await call(entry, request(made), caller.token, requestId);
      const json = (await response.json()) as Json;
      assert.equal(response.status, 200, JSON.stringify(json));
      Object.assign(made, keep?.(json));
      const [row, ...others] = await rows();
      assert.equal(others.length, before.length, "exactly one row");
      const subjectUid = made[subject] ?? assert.fail(`nothing is called ${subject}`);
      const { timeMs, id: _, bodyHash, bodyBytes, ...facts } = row ?? assert.fail();
      assert.equal(bodyHash === "", bodyBytes === 0);
      assert.ok(Math.abs(Date.now() - timeMs) < 60_000);
      assert.deepEqual(facts, {
        rootUid: rootOf(subjectUid),
        type: entry.auditType,
        method: entry.path,
        subjectUid,
        actorUid: caller.uid,
        tokenId: decodeJwt(caller.token).jti,
        requestId,
        remoteAddress: "127.0.0.1",
        version: 3,
        traceId: "",
        actorName: caller.name,
      } satisfies Record<keyof Omit<StoredAuditRow, "timeMs" | "id" | "bodyHash" | "bodyBytes">, unknown>);
    });
  }

  test("rejected calls leave no row", async () => {
    const before = await rows();
    const refused = await Promise.all(
      [...mutations.values()].map(async (entry) => (await call(entry, {}, "no.such.token", "refused")).status),
    );
    assert.deepEqual(new Set(refused), new Set([401]));
    assert.deepEqual(await rows(), before);
  });
}
