// Identity providers over REST: their secret, their fixed fields, the credentials of their directory.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { invalid, precondition } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const DAY_MS = 86_400_000;
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
  const issuer = "oidc.issuer must be an https URL without user, query or fragment";
  const proof = "clientSecret is required unless pkceEnabled is set";
  const cases: readonly { name: string; sent: object; broken: readonly (readonly [string, string])[] }[] = [
    {
      name: "nothing",
      sent: {},
      broken: [
        ["name", "name must match ^[a-z0-9 ._-]{1,}$"],
        ["defaultRole", "defaultRole is required"],
        ["oidc", "oidc is required"],
      ],
    },
    {
      name: "a role that is no uid",
      sent: { ...body, defaultRole: "viewer" },
      broken: [["defaultRole", "defaultRole must be a uid, such as the service assigns"]],
    },
    {
      name: "no client",
      sent: { ...body, oidc: { ...oidc, clientId: "" } },
      broken: [["oidc", "oidc.clientId must be 1 to 512 characters"]],
    },
    {
      name: "neither secret nor PKCE",
      sent: { ...body, oidc: { ...oidc, clientSecret: "" } },
      broken: [["oidc.clientSecret", proof]],
    },
    {
      name: "a scope with a blank",
      sent: { ...body, oidc: { ...oidc, additionalScopes: ["a b"] } },
      broken: [["oidc", "oidc.additionalScopes must be at most 32 scope names"]],
    },
    ...[
      "http://login.example",
      "https://u:p@login.example",
      "https://:p@login.example",
      "https://login.example?x",
      "https://LOGIN.example",
      "x",
      "",
    ].map((one) => ({
      name: `the issuer ${one}`,
      sent: { ...body, oidc: { ...oidc, issuer: one } },
      broken: [["oidc", issuer]] as const,
    })),
  ];
  for (const { name, sent, broken } of cases) {
    it(`of ${name} is rejected`, async () => {
      assert.deepEqual((await create(sent)).outcome, invalid(...broken));
    });
  }

  it("is of a root group alone", async () => {
    assert.deepEqual((await create(body, world.child)).outcome, invalid(["parent", "parent must be a root group"]));
  });

  it("needs no secret with PKCE", async () => {
    await createProvider({ ...body, oidc: { ...oidc, clientSecret: "", pkceEnabled: true } });
  });

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

  it("takes its mappings along when it goes, and is then not there", async () => {
    const uid = await createProvider();
    const mapping = await world.owner.rest("POST", `/externalGroupRoleMappings/${uid}`, {
      externalGroupId: "g",
      roleUid: viewer,
      scope: world.root,
    });
    assert.equal((await world.owner.rest("DELETE", `/identityProviders/${uid}`)).status, 200);
    assert.equal((await world.owner.rest("GET", `/externalGroupRoleMappings/${mapping.json?.uid}`)).status, 404);
    assert.equal((await world.owner.rest("DELETE", `/identityProviders/${uid}`)).status, 404);
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
  const stateOf = async (uid: string) => {
    const { json } = await world.owner.rest("GET", `/identityProviders/${uid}`);
    return (json?.scim ?? {}) as { credentialState?: string; etag?: string; enabled?: boolean };
  };
  const expiry = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();

  it("are issued once, rotated, revoked and issued anew", async () => {
    const uid = await createProvider();
    assert.equal((await stateOf(uid)).credentialState, "CREDENTIAL_STATE_NOT_ISSUED");
    assert.equal((await act(uid, "regenerateScimToken", { etag: "x" })).status, 404);
    assert.equal((await act(uid, "revokeScimToken")).status, 404);

    const first = await act(uid, "generateScimToken");
    assert.match(String(first.json?.token), /^cgscim_[0-9a-f]{64}$/);
    assert.ok(Math.abs(Date.parse(String(first.json?.expireTime)) - Date.now() - 365 * DAY_MS) < 60_000);
    assert.equal((await stateOf(uid)).credentialState, "CREDENTIAL_STATE_LIVE");
    assert.deepEqual(
      (await act(uid, "generateScimToken")).outcome,
      precondition("SCIM_TOKEN_EXISTS", "there is a SCIM token already"),
    );

    const stale = await act(uid, "regenerateScimToken", { etag: "stale" });
    assert.deepEqual([stale.status, (stale.json as { code: number }).code], [409, 10]);
    assert.equal((await act(uid, "regenerateScimToken")).status, 400, "without an etag");
    const second = await act(uid, "regenerateScimToken", { etag: first.json?.etag, overlap: "60s" });
    assert.equal(second.status, 200, second.text);
    assert.notEqual(second.json?.token, first.json?.token);
    assert.notEqual(second.json?.etag, first.json?.etag);
    assert.equal(second.json?.requestedOverlap, "60s");
    assert.equal((await stateOf(uid)).credentialState, "CREDENTIAL_STATE_ROTATING");
    world.harness.skewMs = 61_000;
    assert.equal((await stateOf(uid)).credentialState, "CREDENTIAL_STATE_LIVE");
    world.harness.skewMs = 0;
    assert.equal((await act(uid, "regenerateScimToken", { etag: second.json?.etag, overlap: "86401s" })).status, 400);

    const gone = await act(uid, "revokeScimToken");
    assert.equal(gone.status, 200, gone.text);
    assert.equal((await stateOf(uid)).credentialState, "CREDENTIAL_STATE_REVOKED");
    assert.equal((await act(uid, "regenerateScimToken", { etag: gone.json?.etag })).status, 404);
    assert.equal((await act(uid, "generateScimToken", { neverExpires: true })).json?.expireTime, undefined);
  });

  it("that are replaced expire no later than before", async () => {
    const uid = await createProvider();
    const soon = new Date(Date.now() + 30_000).toISOString();
    const first = await act(uid, "generateScimToken", { expireTime: soon });
    const second = await act(uid, "regenerateScimToken", { etag: first.json?.etag, overlap: "3600s" });
    assert.equal(second.json?.previousTokenExpireTime, soon);
    assert.equal(second.json?.requestedOverlap, "3600s");
  });

  it("live as long as requested, at most two years", async () => {
    const cases: readonly [sent: object, good: boolean][] = [
      [{ expireTime: expiry(729) }, true],
      [{ expireTime: expiry(731) }, false],
      [{ expireTime: expiry(-1) }, false],
      [{ expireTime: expiry(1), neverExpires: true }, false],
    ];
    for (const [sent, good] of cases) {
      assert.equal(
        (await act(await createProvider(), "generateScimToken", sent)).status,
        good ? 200 : 400,
        JSON.stringify(sent),
      );
    }
  });

  it("appear in no other answer and in the database as a hash alone", async () => {
    const uid = await createProvider();
    const { json } = await act(uid, "generateScimToken");
    const token = String(json?.token);
    for (const path of [`/identityProviders/${uid}`, "/identityProviders"]) {
      assert.ok(!(await world.owner.rest("GET", path)).text.includes(token.slice(7)));
    }
    const row = await world.write((tx) => tx.identityProviders.find(uid));
    assert.ok(row && !JSON.stringify(row).includes(token.slice(7)));
    assert.match(row.scim.tokenHash, /^[0-9a-f]{64}$/);
  });

  it("are enabled only with two owners, and by who saw the newest state", async () => {
    const uid = await createProvider();
    const { json } = await act(uid, "generateScimToken");
    const { etag } = json as { etag: string };
    const few = precondition("OWNERS_REQUIRED", "enabling SCIM needs at least two owners of the root group");
    assert.deepEqual((await act(uid, "setScimEnabled", { enabled: true, etag })).outcome, few);
    const below = await world.harness.identity();
    await world.harness.bind(below.uid, "owner", world.child);
    assert.deepEqual(
      (await act(uid, "setScimEnabled", { enabled: true, etag })).outcome,
      few,
      "an owner of a group below is none",
    );
    await world.createBound("owner");
    const enabled = await act(uid, "setScimEnabled", { enabled: true, etag });
    assert.deepEqual([enabled.status, enabled.json?.enabled], [200, true]);
    assert.equal((await act(uid, "setScimEnabled", { enabled: false, etag })).status, 409, "the etag has changed");
    assert.equal((await act(uid, "setScimEnabled", { enabled: false, etag: enabled.json?.etag })).status, 200);
  });
});
