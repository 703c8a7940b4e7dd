// Callers who delete their own identity: the row has the name that they had.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { type Harness, startHarness } from "../support/harness.js";

describe("audit rows of callers who delete themselves", () => {
  let harness: Harness;
  let [group, owner] = ["", ""];
  before(async () => {
    harness = await startHarness();
    ({ group, token: owner } = await harness.organisation("acme.example"));
  });
  after(() => harness.stop());

  async function deleteAs(token: string, path: string) {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${harness.url}${path}`, { method: "DELETE", headers });
    assert.equal(response.status, 200, await response.text());
    const [row] = await harness.app.installation.store.read((tx) => tx.audit.listNewest(1));
    const { type, actorUid, subjectUid, actorName } = row ?? assert.fail("no row");
    return { type, actorUid, subjectUid, actorName };
  }
  const exists = async (uid: string) =>
    (await harness.app.installation.store.read((tx) => tx.table(identityKind).find(uid))) !== undefined;

  for (const [name, email] of [
    ["Ann", "ann@acme.example"],
    ["", "bob@acme.example"],
  ] as const) {
    test(`a person with the ${name === "" ? "address" : "name"} ${name || email}`, async () => {
      const person = await harness.identity({ name, email });
      assert.deepEqual(await deleteAs(person.token, `/auth/v1/delete/${person.uid}`), {
        type: "chainguard.platform.auth.Auth.Delete",
        actorUid: person.uid,
        subjectUid: person.uid,
        actorName: name || email,
      });
      assert.equal(await exists(person.uid), false);
    });
  }

  for (const version of ["v1", "v2beta1"]) {
    test(`an identity of an organisation, by ${version}`, async () => {
      const bot = await harness.identity({ name: "bot" }, group);
      await harness.bind(bot.uid, "owner", group);
      assert.deepEqual(await deleteAs(bot.token, `/iam/${version}/identities/${bot.uid}`), {
        type: "dev.chainguard.api.iam.identity.deleted.v1",
        actorUid: bot.uid,
        subjectUid: bot.uid,
        actorName: "bot",
      });
      assert.equal(await exists(bot.uid), false);
    });
  }

  test("a person who deletes the provider that they came through", async () => {
    const headers = { authorization: `Bearer ${owner}`, "content-type": "application/json" };
    const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "secret" };
    const body = JSON.stringify({ name: "login", defaultRole: builtinRoleUid("viewer"), oidc });
    const created = await fetch(`${harness.url}/iam/v2beta1/identityProviders/${group}`, {
      method: "POST",
      headers,
      body,
    });
    const { uid } = (await created.json()) as { uid: string };
    const person = await harness.identity({ name: "Carol", providerUid: uid });
    await harness.bind(person.uid, "owner", group);
    assert.deepEqual(await deleteAs(person.token, `/iam/v2beta1/identityProviders/${uid}`), {
      type: "dev.chainguard.api.iam.identity_providers.deleted.v1",
      actorUid: person.uid,
      subjectUid: uid,
      actorName: "Carol",
    });
    assert.equal(await exists(person.uid), false);
  });
});
