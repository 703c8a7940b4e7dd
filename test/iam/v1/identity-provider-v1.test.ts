// Identity providers, version 1, beside version 2.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  IdentityProviders,
  IdentityProvider_OIDC_CorrelationRule as Rule,
  IdentityProvider_SCIM_CredentialState as State,
} from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import {
  IdentityProvidersService,
  IdentityProvider_OIDC_CorrelationRule as RuleV2,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { insertScimToken } from "../../support/scim.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { type Wire, wireNames, wireOf } from "./wires.js";

const v1 = IdentityProviders.method;
const v2 = IdentityProvidersService.method;
const [viewer, editor] = ["viewer", "editor"].map(builtinRoleUid) as [string, string];
const secret = "s3cr3t-of-the-client";
const settings = {
  issuer: "https://login.example",
  clientId: "client",
  additionalScopes: ["groups", "email"],
  groupsClaim: "groups",
  correlationRule: Rule.OID_EQUALS_EXTERNAL_ID,
  pkceEnabled: false,
};
const oidc = (more: object = {}) => ({
  case: "oidc" as const,
  value: { ...settings, clientSecret: secret, ...more },
});
const whole = { name: "login", description: "d", defaultRole: viewer, configuration: oidc() };

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const readSealedSecret = (uid: string) =>
  world.write(async (tx) => (await tx.table(identityProviderKind).find(uid))?.sealedSecret);

for (const name of wireNames) {
  describe(`identity providers over ${name}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, world.owner.token);
    });
    after(() => wire.close());
    const createProvider = async (more: object = {}) =>
      (await wire.call(v1.create, { parentId: world.root, identityProvider: { ...whole, ...more } })).id;
    const readList = async (filter: MessageInitShape<typeof v1.list.input>, token?: string) =>
      (await wire.call(v1.list, filter, token)).items;

    it("are the same in both versions, whichever created them", async () => {
      const mine = await wire.call(v1.create, { parentId: world.root, identityProvider: whole });
      assert.match(mine.id, new RegExp(`^${world.root}/[0-9a-f]{16}$`));
      const read = await wire.call(v2.getIdentityProvider, { uid: mine.id });
      for (const shown of [mine, read]) {
        assert.deepEqual([shown.name, shown.description, shown.defaultRole], ["login", "d", viewer]);
        const { $typeName: _, ...value } = shown.configuration.value ?? { $typeName: "" };
        const only = "tokenEndpointAuthMethod" in value ? { tokenEndpointAuthMethod: 0 } : {};
        assert.deepEqual(value, { ...settings, clientSecret: "", ...only });
        assert.equal(shown.scim?.endpointUrl, `${world.url}/scim/v2/${mine.id}`);
        assert.equal(shown.scim?.credentialState, State.NOT_ISSUED);
      }
      assert.deepEqual([mine.createdAt, mine.updatedAt], [read.createTime, read.updateTime]);
      assert.ok(mine.createdAt && mine.updatedAt);

      const identityProvider = { ...whole, configuration: oidc({ correlationRule: RuleV2.SUB_EQUALS_EXTERNAL_ID }) };
      const { uid } = await wire.call(v2.createIdentityProvider, { parent: world.root, identityProvider });
      const [shown] = await readList({ id: uid });
      assert.equal(shown?.configuration.value?.correlationRule, Rule.SUB_EQUALS_EXTERNAL_ID);
      await wire.call(v2.updateIdentityProvider, {
        identityProvider: { uid, name: "renamed" },
        updateMask: { paths: ["name"] },
      });
      assert.equal((await readList({ id: uid }))[0]?.name, "renamed");
      await wire.call(v1.update, { ...whole, id: mine.id, name: "again", defaultRole: editor });
      const changed = await wire.call(v2.getIdentityProvider, { uid: mine.id });
      assert.deepEqual([changed.name, changed.defaultRole], ["again", editor]);

      await wire.call(v1.delete, { id: uid });
      assert.match(await wire.expectError(v2.getIdentityProvider, { uid }), /^Not found: identity provider/);
      await wire.call(v2.deleteIdentityProvider, { uid: mine.id });
      assert.deepEqual(await readList({ id: mine.id }), []);
      const missing = `Not found: identity provider: there is no identity provider ${mine.id}`;
      assert.equal(await wire.expectError(v1.delete, { id: mine.id }), missing);
      assert.equal(await wire.expectError(v1.update, { ...whole, id: mine.id }), missing);
    });

    it("lose in an update what it leaves out, but neither their secret nor their directory", async () => {
      const id = await createProvider();
      const { etag } = await world.write((tx) => insertScimToken(tx, id));
      const before = await readSealedSecret(id);
      assert.ok(before);
      const { issuer, clientId, correlationRule } = settings;
      const few = { case: "oidc" as const, value: { issuer, clientId, correlationRule } };
      const sent = { id, name: "login", defaultRole: viewer, configuration: few };
      const { createdAt, updatedAt, ...changed } = await wire.call(v1.update, sent);
      assert.deepEqual([changed.description, changed.configuration.value?.groupsClaim], ["", ""]);
      assert.deepEqual(changed.configuration.value?.additionalScopes, []);
      assert.deepEqual([changed.scim?.etag, changed.scim?.credentialState], [etag, State.LIVE]);
      assert.ok(createdAt && updatedAt);
      assert.equal(await readSealedSecret(id), before);
      const unruled = { ...few, value: { issuer, clientId } };
      const kept = await wire.call(v1.update, { ...sent, configuration: unruled });
      assert.equal(kept.configuration.value?.correlationRule, correlationRule, "zero is absent");

      // What was read can be sent back as it is.
      const [read] = await readList({ id });
      assert.ok(read);
      const echoed = await wire.call(v1.update, read);
      assert.deepEqual({ ...echoed, updatedAt: undefined }, { ...read, updatedAt: undefined });
      assert.equal(await readSealedSecret(id), before);

      await wire.call(v1.update, { ...sent, configuration: oidc({ clientSecret: "another-s3cr3t" }) });
      assert.notEqual(await readSealedSecret(id), before);
      assert.ok(!wire.heard.includes("s3cr3t"));
    });

    it("are filtered by id, name and parent", async () => {
      const only = `only ${name.toLowerCase()}`;
      const [a, b] = [await createProvider({ name: only }), await createProvider({ name: only })].sort() as [
        string,
        string,
      ];
      const c = await createProvider({ name: "c" });
      const rows: readonly (readonly [filter: MessageInitShape<typeof v1.list.input>, ids: string[]])[] = [
        [{ id: c }, [c]],
        [{ name: only }, [a, b]],
        [{ id: b, name: only }, [b]],
        [{ id: c, name: only }, []],
        [{ id: randomIds.newUid(world.root) }, []],
        [{ name: only, uidp: { childrenOf: world.root } }, [a, b]],
        [{ name: only, uidp: { descendantsOf: world.child } }, []],
        [{ uidp: { ids: [c, a] } }, [a, c].sort()],
      ];
      for (const [filter, ids] of rows) {
        const found = (await readList(filter)).map(({ id }) => id);
        assert.deepEqual(found, ids, JSON.stringify(filter));
      }
      const all = (await readList({})).map(({ id }) => id);
      for (const id of [a, b, c]) assert.ok(all.includes(id));
    });

    it("name what is wrong as version 1 calls it", async () => {
      const id = await createProvider();
      const parentId = world.root;
      const proof = "oidc.clientSecret: clientSecret is required unless pkceEnabled is set";
      const uid = "must be a uid, such as the service assigns";
      const create = (identityProvider: object, at = parentId) =>
        wire.expectError(v1.create, { parentId: at, identityProvider });
      const update = (provider: object) => wire.expectError(v1.update, { id, ...provider });
      const rows: readonly (readonly [failure: Promise<string>, text: string])[] = [
        [
          wire.expectError(v1.create, { parentId }),
          "name: name must match ^[a-z0-9 ._-]{1,}$; defaultRole: defaultRole is required; oidc: oidc is required",
        ],
        [create(whole, world.child), "parentId: parentId must be a root group"],
        [create(whole, "nonsense"), `parentId: parentId ${uid}`],
        [create({ ...whole, configuration: oidc({ clientSecret: "" }) }), proof],
        [create({ ...whole, defaultRole: "viewer" }), `defaultRole: defaultRole ${uid}`],
        [update({ ...whole, configuration: { case: undefined } }), "oidc: oidc is required"],
        [update({ ...whole, defaultRole: "" }), "defaultRole: defaultRole is required"],
        [
          update({ ...whole, configuration: oidc({ correlationRule: Rule.SUB_EQUALS_EXTERNAL_ID }) }),
          "oidc.correlationRule: correlationRule cannot change",
        ],
        [update({ ...whole, scim: { enabled: true } }), "scim.enabled: enabled is changed with SetScimEnabled"],
        [create({ ...whole, scim: { enabled: true } }), "scim.enabled: enabled is changed with SetScimEnabled"],
        [
          update({ ...whole, scim: { endpointUrl: "/elsewhere" } }),
          "scim.endpointUrl: endpointUrl is set by the service alone",
        ],
        [update({ ...whole, id: "nonsense" }), `id: id ${uid}`],
        [wire.expectError(v1.list, { id: "nonsense" }), "id: id must be an id, such as the service assigns"],
      ];
      for (const [failure, text] of rows) assert.equal(await failure, `Invalid argument: ${text}`);
    });

    it("are hidden from others, who cannot change them", async () => {
      const { token } = world.foreignOwner;
      const id = await createProvider();
      assert.deepEqual(await readList({}, token), []);
      assert.deepEqual(await readList({ id }, token), []);
      const failures = [
        await wire.expectError(v1.create, { parentId: world.root, identityProvider: whole }, token),
        await wire.expectError(v1.update, { ...whole, id, name: "theirs" }, token),
        await wire.expectError(v1.delete, { id }, token),
        await wire.expectError(v1.generateScimToken, { identityProviderId: id }, token),
        await wire.expectError(v1.regenerateScimToken, { identityProviderId: id, etag: "x" }, token),
        await wire.expectError(v1.revokeScimToken, { identityProviderId: id }, token),
        await wire.expectError(v1.setScimEnabled, { identityProviderId: id, enabled: true }, token),
      ];
      for (const text of failures) assert.match(text, /^Permission denied: identity_providers\./);
      // Who may change providers may still not send an organisation's logins elsewhere.
      const changer = await world.caller(["identity_providers.update", "role_bindings.create"]);
      const denied = await wire.expectError(v1.update, { ...whole, id }, changer.token);
      assert.match(denied, /^Permission denied: granting rights at/);
      assert.equal((await readList({ id }))[0]?.name, "login");
    });
  });
}
