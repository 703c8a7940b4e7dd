// Identity providers over REST: their secret, their fixed fields, the credentials of their directory.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { findScimCredential } from "../../src/iam/identity-providers/scim-credential.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { identityProviderKind, type ScimState } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { OLDEST_VERSION } from "../../src/store/version.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { invalid, precondition } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { startHarness } from "../support/harness.js";
import { bindingRow } from "../support/rows.js";
import { insertScimToken } from "../support/scim.js";
import { tempDir } from "../support/temp-dir.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const [viewer, editor] = ["viewer", "editor"].map(builtinRoleUid) as [string, string];
const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "s3cr3t-of-the-client" };
const body = { name: "login", description: "d", defaultRole: viewer, oidc };

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const create = (sent: object, group = world.root) => world.owner.rest("POST", `/identityProviders/${group}`, sent);
const createProvider = async (sent: object = body): Promise<string> => {
  const { status, json, text } = await create(sent);
  assert.equal(status, 200, text);
  return String(json?.uid);
};
const patch = (uid: string, sent: object, mask?: string) =>
  world.owner.rest("PATCH", `/identityProviders/${uid}${mask === undefined ? "" : `?updateMask=${mask}`}`, sent);

describe("a provider", () => {
  it("never shows its secret, and keeps it through updates that omit it", async () => {
    const uid = await createProvider();
    const responses = [
      await world.owner.rest("GET", `/identityProviders/${uid}`),
      await world.owner.rest("GET", "/identityProviders"),
      await patch(uid, { description: "x" }),
      await patch(uid, (await world.owner.rest("GET", `/identityProviders/${uid}`)).json ?? {}),
      await patch(uid, { oidc: { issuer: oidc.issuer, clientId: "id" } }),
      await patch(uid, { oidc: { ...oidc, clientSecret: "" } }, "oidc"),
      await patch(uid, { oidc: { ...oidc, clientSecret: "another-s3cr3t" } }),
      await patch(uid, { name: "renamed", defaultRole: editor, oidc: { ...oidc, clientSecret: "" } }, "*"),
    ];
    for (const { status, text } of responses) {
      assert.equal(status, 200, text);
      assert.ok(!text.includes("s3cr3t"), text);
    }
    const { outcome } = await patch(uid, { oidc: { clientSecret: "" } }, "oidc.clientSecret");
    assert.deepEqual(
      outcome,
      invalid(["oidc.clientSecret", "clientSecret is required unless pkceEnabled is set"]),
      "cleared by name",
    );
  });

  it("hands its secret to no issuer but the one it was given for", async () => {
    const elsewhere = { ...oidc, issuer: "https://elsewhere.example" };
    const uid = await createProvider();
    const told = await createProvider({ ...body, oidc: { ...oidc, clientSecret: "", pkceEnabled: true } });
    const refused = invalid(["oidc.clientSecret", "clientSecret is required where the issuer changes"]);
    for (const [sent, mask] of [
      [{ oidc: { issuer: elsewhere.issuer } }, "oidc.issuer"],
      [{ oidc: { ...elsewhere, clientSecret: "" } }, "oidc"],
      [{ ...body, oidc: { ...elsewhere, clientSecret: "" } }, "*"],
    ] as const) {
      assert.deepEqual((await patch(uid, sent, mask)).outcome, refused, mask);
      assert.equal((await patch(told, sent, mask)).status, mask === "oidc.issuer" ? 200 : 400, mask);
    }
    assert.equal((await patch(uid, { oidc: elsewhere }, "oidc")).status, 200);
    const cleared = { oidc: { ...oidc, clientSecret: "", pkceEnabled: true } };
    assert.equal((await patch(uid, cleared, "oidc.issuer,oidc.clientSecret,oidc.pkceEnabled")).status, 200);
  });

  it("has its secret sealed in the database", async () => {
    const data = tempDir();
    const harness = await startHarness({ data });
    const { group, token } = await harness.organisation("sealed");
    const { status } = await restAs(harness.url, token)("POST", `/identityProviders/${group}`, body);
    await harness.stop();
    assert.equal(status, 200);
    const files = readdirSync(data).map((name) => readFileSync(join(data, name)));
    assert.ok(
      files.some((bytes) => bytes.includes("login.example")),
      "the settings are there in clear",
    );
    for (const bytes of files) assert.equal(bytes.includes("s3cr3t"), false);
  });

  const updates: readonly { name: string; mask?: string; sent: object; after: object }[] = [
    { name: "the keys present", sent: { description: "" }, after: { name: "login", description: "" } },
    {
      name: "a part of the settings",
      mask: "oidc.clientId",
      sent: { oidc: { clientId: "new" } },
      after: {
        oidc: { issuer: oidc.issuer, clientId: "new", additionalScopes: [], groupsClaim: "", pkceEnabled: false },
      },
    },
    {
      name: "what nobody sets is ignored",
      mask: "scim.enabled,uid,name",
      sent: { name: "m", scim: { enabled: true } },
      after: { name: "m" },
    },
  ];
  for (const { name, mask, sent, after: expected } of updates) {
    it(`changes by ${name}`, async () => {
      const uid = await createProvider();
      const { json, text } = await patch(uid, sent, mask);
      for (const [field, value] of Object.entries(expected)) assert.deepEqual(json?.[field], value, text);
      assert.deepEqual((await world.owner.rest("GET", `/identityProviders/${uid}`)).json, json);
    });
  }

  it("keeps its correlation rule", async () => {
    const uid = await createProvider({
      ...body,
      oidc: { ...oidc, correlationRule: "CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID" },
    });
    const { outcome } = await patch(uid, {
      oidc: { ...oidc, correlationRule: "CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID" },
    });
    const fixed = invalid(["oidc.correlationRule", "correlationRule cannot change"]);
    assert.deepEqual(outcome, fixed);
    assert.deepEqual((await patch(uid, {}, "oidc.correlationRule")).outcome, fixed, "cleared by its own path");
    const { json } = await patch(uid, { oidc: { ...oidc, clientId: "other" } }, "oidc");
    const kept = json?.oidc as Record<string, unknown> | undefined;
    assert.deepEqual([kept?.clientId, kept?.correlationRule], ["other", "CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID"]);
  });

  it("is not changed to a method of the token endpoint that there is not", async () => {
    const uid = await createProvider();
    const broken = ["oidc", "oidc.tokenEndpointAuthMethod must name a method"] as const;
    const { outcome } = await patch(uid, { oidc: { tokenEndpointAuthMethod: 99 } }, "oidc.tokenEndpointAuthMethod");
    assert.deepEqual(outcome, invalid(broken));
  });

  it("lets go of a role that it had, so that it can be deleted", async () => {
    const [roleUid, kept] = [await world.role(["groups.list"]), await world.role(["groups.list"])];
    const uid = await createProvider({ ...body, defaultRole: roleUid });
    const inUse = precondition("RESOURCE_IN_USE", "cannot delete role that is in use");
    assert.deepEqual((await world.owner.rest("DELETE", `/roles/${roleUid}`)).outcome, inUse);
    await world.write((tx) => insertScimToken(tx, uid, { enabled: true }));
    assert.equal((await patch(uid, { defaultRole: kept })).status, 200);
    assert.equal((await patch(uid, { defaultRole: roleUid })).status, 200);
    assert.equal((await patch(uid, { defaultRole: "" }, "defaultRole")).status, 200);
    assert.equal((await world.owner.rest("DELETE", `/roles/${kept}`)).status, 200);
    assert.equal((await world.owner.rest("DELETE", `/roles/${roleUid}`)).status, 200);
    const { json } = await world.owner.rest("GET", `/identityProviders/${uid}`);
    assert.equal(json?.defaultRole, "");
    assert.equal((await patch(uid, { defaultRole: roleUid })).status, 400, "a deleted role");
    assert.equal((await patch(uid, { defaultRole: viewer })).status, 200);
  });

  it("gets a default role of those alone who hold its rights, also the one that it had", async () => {
    const uid = await createProvider({ ...body, defaultRole: builtinRoleUid("owner") });
    await world.write((tx) => insertScimToken(tx, uid, { enabled: true }));
    assert.equal((await patch(uid, { defaultRole: "" }, "defaultRole")).status, 200);
    const few = await world.caller(["identity_providers.update", "role_bindings.create", "identity_providers.list"]);
    const { status } = await few.rest("PATCH", `/identityProviders/${uid}`, { defaultRole: builtinRoleUid("owner") });
    assert.equal(status, 403);
  });

  it("is filtered by name and parent", async () => {
    const uid = await createProvider({ ...body, name: "unique" });
    for (const query of [
      "name=unique",
      `uidp.ids=${uid}`,
      `uidp.children_of=${world.root}&name=unique&order_by=updated_at%20desc`,
    ]) {
      const { json } = await world.owner.rest("GET", `/identityProviders?${query}`);
      assert.deepEqual(
        ((json?.identityProviders ?? []) as { uid: string }[]).map((one) => one.uid),
        [uid],
        query,
      );
    }
  });
});

describe("the credentials of a directory", () => {
  const act = (uid: string, action: string, sent: object = {}) =>
    world.owner.rest("POST", `/identityProviders/${uid}:${action}`, sent);
  const defaultRoleOf = async (uid: string) =>
    (await world.owner.rest("GET", `/identityProviders/${uid}`)).json?.defaultRole;
  const giveToken = (uid: string, state: Partial<ScimState> = {}) =>
    world.write((tx) => insertScimToken(tx, uid, state));

  it("are tokens of which the store has hashes alone", async () => {
    const uid = await createProvider();
    const stored = async () => (await world.write((tx) => tx.table(identityProviderKind).find(uid)))?.scim as ScimState;
    const first = await act(uid, "generateScimToken");
    const [token, etag] = [String(first.json?.token), first.json?.etag];
    const nowMs = Date.now();
    assert.equal(findScimCredential(await stored(), token, nowMs), "current");
    const second = String((await act(uid, "regenerateScimToken", { etag, overlap: "60s" })).json?.token);
    assert.equal(findScimCredential(await stored(), second, nowMs), "current");
    assert.equal(findScimCredential(await stored(), token, nowMs), "previous");
    assert.doesNotMatch(JSON.stringify(await stored()), /cgscim_/);
    assert.equal(await world.write(async (tx) => JSON.stringify(await tx.audit.listNewest(50)).includes(token)), false);
    await act(uid, "revokeScimToken");
    for (const one of [token, second]) assert.equal(findScimCredential(await stored(), one, nowMs), undefined);
    assert.deepEqual([(await stored()).tokenHash, (await stored()).previousHash], ["", ""]);
  });

  it("are for those who may manage SCIM, and list the providers", async () => {
    const uid = await createProvider();
    const both = await world.caller(["identity_providers.scim.manage", "identity_providers.list"]);
    const one = await world.caller(["identity_providers.scim.manage"]);
    const other = await world.caller(["identity_providers.list", "identity_providers.update", "role_bindings.create"]);
    for (const version of ["v1", "v2beta1", "v2"]) {
      for (const action of ["generateScimToken", "regenerateScimToken", "revokeScimToken", "setScimEnabled"]) {
        for (const { token } of [one, other, world.foreignOwner]) {
          const path = `/identityProviders/${uid}:${action}`;
          const denied = await restAs(world.url, token, `/iam/${version}`)("POST", path, { etag: "x" });
          assert.equal(denied.status, 403, `${version} ${action}: ${denied.text}`);
        }
      }
    }
    assert.equal((await both.rest("POST", `/identityProviders/${uid}:generateScimToken`, {})).status, 200);
  });

  it("appear in no line of the log", async () => {
    const lines: string[] = [];
    const logger = createLogger("debug", { write: (line) => void lines.push(String(line)) });
    const other = await startIamWorld({ accessLog: "all", logLevel: "debug" }, { logger });
    try {
      const made = await other.owner.rest("POST", `/identityProviders/${other.root}`, body);
      const path = `/identityProviders/${made.json?.uid}`;
      const first = await other.owner.rest("POST", `${path}:generateScimToken`, {});
      const second = await other.owner.rest("POST", `${path}:regenerateScimToken`, { etag: first.json?.etag });
      const text = lines.join("");
      assert.ok(
        text.includes("regenerateScimToken") || text.includes("RegenerateScimToken"),
        "control: the calls are there",
      );
      for (const { json } of [first, second]) {
        const token = String(json?.token);
        assert.match(token, /^cgscim_/);
        assert.ok(!text.includes(token.slice("cgscim_".length)));
      }
    } finally {
      await other.stop();
    }
  });

  it("are enabled only with two owners, and by who saw the newest state", async () => {
    const uid = await createProvider();
    const { etag } = await giveToken(uid);
    const rule = "enabling SCIM needs at least two owners of the root group whom no directory manages";
    const few = precondition("OWNERS_REQUIRED", rule);
    assert.deepEqual((await act(uid, "setScimEnabled", { enabled: true, etag })).outcome, few);
    const below = await world.harness.identity();
    await world.harness.bind(below.uid, "owner", world.child);
    assert.deepEqual(
      (await act(uid, "setScimEnabled", { enabled: true, etag })).outcome,
      few,
      "an owner of a group below is none",
    );
    const second = await world.harness.identity();
    const ownerBinding = bindingRow(randomIds.newUid(world.root), second.uid, builtinRoleUid("owner"));
    await world.write((tx) => tx.table(roleBindingKind).insert({ ...ownerBinding, managedByUid: uid }));
    assert.deepEqual(
      (await act(uid, "setScimEnabled", { enabled: true, etag })).outcome,
      few,
      "an owner whom a directory manages is none",
    );
    await world.createBound("owner");
    const enabled = await act(uid, "setScimEnabled", { enabled: true, etag });
    assert.deepEqual([enabled.status, enabled.json?.enabled], [200, true]);
    assert.equal(await defaultRoleOf(uid), "", "it is cleared");
    assert.equal((await act(uid, "setScimEnabled", { enabled: false, etag })).status, 409, "the etag has changed");
    const paused = await act(uid, "setScimEnabled", { enabled: false, etag: enabled.json?.etag });
    assert.deepEqual(
      [paused.status, await defaultRoleOf(uid)],
      [200, ""],
      "a pause needs nothing, and changes nothing else",
    );
    const resumed = await act(uid, "setScimEnabled", { enabled: true, etag: paused.json?.etag });
    assert.equal(resumed.status, 200);
    assert.equal((await patch(uid, { defaultRole: editor })).status, 200);
    const again = await act(uid, "setScimEnabled", { enabled: true, etag: resumed.json?.etag });
    assert.deepEqual([again.status, await defaultRoleOf(uid)], [200, editor], "enabling it again changes nothing");
    assert.equal((await act(uid, "setScimEnabled", { enabled: false, etag: again.json?.etag })).status, 200);
    assert.equal(await defaultRoleOf(uid), editor);
  });

  it("are enabled only once no server of an older version may use the database", async () => {
    const uid = await createProvider();
    await world.createBound("owner");
    const { etag } = await giveToken(uid);
    const oldest = (await world.write((tx) => tx.settings.find(OLDEST_VERSION))) ?? "";
    await world.write((tx) => tx.settings.put(OLDEST_VERSION, "1.13.0"));
    try {
      const waiting = await act(uid, "setScimEnabled", { enabled: true, etag });
      assert.match(waiting.text, /DATABASE_NOT_CONTRACTED/);
      assert.equal((await act(uid, "generateScimToken")).status, 400, "there is a token, so it is not the database");
    } finally {
      await world.write((tx) => tx.settings.put(OLDEST_VERSION, oldest));
    }
    assert.equal((await act(uid, "setScimEnabled", { enabled: true, etag })).status, 200);
  });
});
