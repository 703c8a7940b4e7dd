// The credentials of a directory, version 1, beside version 2.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  IdentityProviders,
  IdentityProvider_SCIM_CredentialState as State,
} from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { builtinRoleUid } from "../../../src/kernel/ids.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { type Wire, wireNames, wireOf } from "./wires.js";

const v1 = IdentityProviders.method;
const v2 = IdentityProvidersService.method;

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

for (const name of wireNames) {
  describe(`SCIM tokens over ${name}`, () => {
    let wire: Wire;
    let id: string;
    before(async () => {
      wire = wireOf(name, world.url, world.owner.token);
      const value = { issuer: "https://login.example", clientId: "c", pkceEnabled: true };
      const configuration = { case: "oidc" as const, value };
      const identityProvider = { name: "login", defaultRole: builtinRoleUid("viewer"), configuration };
      ({ id } = await wire.call(v1.create, { parentId: world.root, identityProvider }));
    });
    after(() => wire.close());
    const scim = async () => {
      const [mine] = (await wire.call(v1.list, { id })).items;
      const { scim: other } = await wire.call(v2.getIdentityProvider, { uid: id });
      assert.ok(mine?.scim);
      assert.deepEqual({ ...mine.scim, $typeName: "" }, { ...other, $typeName: "" });
      return mine.scim;
    };

    it("are generated, replaced and revoked in both versions alike", async () => {
      const identityProviderId = id;
      const first = await wire.call(v1.generateScimToken, { identityProviderId });
      assert.match(first.token, /^cgscim_[0-9a-f]{64}$/);
      const live = await scim();
      assert.deepEqual([live.credentialState, live.etag], [State.LIVE, first.etag]);
      assert.deepEqual([live.tokenExpireTime, live.endpointUrl], [first.expireTime, first.endpointUrl]);
      assert.equal(live.endpointUrl, `${world.url}/scim/v2/${id}`);
      const exists = /^Precondition failed: there is a valid SCIM token/;
      assert.match(await wire.expectError(v1.generateScimToken, { identityProviderId }), exists);
      assert.match(await wire.expectError(v2.generateScimToken, { identityProviderUid: id }), exists);
      const overlap = { seconds: 60n, nanos: 0 };
      const second = await wire.call(v1.regenerateScimToken, { identityProviderId, etag: first.etag, overlap });
      assert.notEqual(second.token, first.token);
      assert.deepEqual([second.identityProviderId, second.requestedOverlap?.seconds], [id, 60n]);
      const rotating = await scim();
      assert.deepEqual([rotating.credentialState, rotating.etag], [State.ROTATING, second.etag]);
      assert.deepEqual(rotating.previousTokenExpireTime, second.previousTokenExpireTime);
      const third = await wire.call(v2.regenerateScimToken, {
        identityProviderUid: id,
        etag: second.etag,
        neverExpires: true,
      });
      assert.deepEqual([third.expireTime, (await scim()).tokenExpireTime], [undefined, undefined]);

      const revoked = await wire.call(v1.revokeScimToken, { identityProviderId });
      assert.deepEqual([revoked.identityProviderId, revoked.enabled], [id, false]);
      assert.ok(revoked.revokeTime);
      assert.deepEqual([(await scim()).credentialState, (await scim()).etag], [State.REVOKED, revoked.etag]);
      assert.deepEqual((await scim()).tokenExpireTime, revoked.revokeTime);
      assert.match(
        await wire.expectError(v1.revokeScimToken, { identityProviderId }),
        /^Not found: identity provider: there is no SCIM token/,
      );
      await wire.call(v1.generateScimToken, { identityProviderId });
      assert.equal((await scim()).credentialState, State.LIVE);
    });

    it("count once SCIM is on, which needs two owners", async () => {
      const identityProviderId = id;
      const { etag } = await scim();
      const on = { identityProviderId, etag, enabled: true };
      if (name === wireNames[0]) {
        assert.match(await wire.expectError(v1.setScimEnabled, on), /^Precondition failed: enabling SCIM needs/);
        await world.createBound("owner");
      }
      const changed = await wire.call(v1.setScimEnabled, on);
      assert.deepEqual([changed.identityProviderId, changed.enabled], [id, true]);
      assert.notEqual(changed.etag, etag);
      assert.deepEqual([(await scim()).enabled, (await scim()).etag], [true, changed.etag]);
      const defaultRole = builtinRoleUid("viewer");
      const [provider] = (await wire.call(v1.list, { id })).items;
      assert.ok(provider);
      assert.equal(provider.defaultRole, "", "cleared by SCIM");
      const { $typeName: _, ...same } = provider;
      assert.equal((await wire.call(v1.update, { ...same, name: "renamed" })).defaultRole, "");
      assert.equal((await wire.call(v1.update, { ...same, defaultRole })).defaultRole, defaultRole);
      assert.equal((await wire.call(v1.update, same)).defaultRole, defaultRole, "an empty one changes nothing");
      const { etag: last } = await wire.call(v2.setScimEnabled, { identityProviderUid: id, etag: changed.etag });
      assert.deepEqual([(await scim()).enabled, (await scim()).etag], [false, last]);
    });

    it("name what is wrong as version 1 calls it", async () => {
      const identityProviderId = id;
      const { etag } = await scim();
      await wire.call(v1.revokeScimToken, { identityProviderId });
      const rows: readonly (readonly [failure: Promise<string>, text: string])[] = [
        [
          wire.expectError(v1.generateScimToken, { identityProviderId: "nonsense" }),
          "identityProviderId: identityProviderId must be a uid, such as the service assigns",
        ],
        [wire.expectError(v1.regenerateScimToken, { identityProviderId }), "etag: etag is required"],
        [wire.expectError(v1.setScimEnabled, { identityProviderId }), "etag: etag is required"],
      ];
      for (const [failure, text] of rows) assert.equal(await failure, `Invalid argument: ${text}`);
      assert.match(await wire.expectError(v1.setScimEnabled, { identityProviderId, etag }), /^Aborted: etag: /);
    });
  });
}
