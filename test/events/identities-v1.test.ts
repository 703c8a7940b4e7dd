// The metadata of callers, in version 1 beside version 2; and that no identity is created outside of groups.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code, type ConnectError } from "@connectrpc/connect";
import { Identities } from "#gen/chainguard/platform/events/identities_pb.js";
import { connectTo, staticToken } from "../../src/client/index.js";
import { invalid } from "../contract/expectations.js";
import { type Rest, restAs } from "../contract/rest.js";
import { type IamWorld, type Somebody, startIamWorld } from "../iam/iam-world.js";

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const v1 = ({ token }: Somebody): Rest => restAs(world.url, token, "/iam/v1");

describe("what callers tell of themselves", () => {
  const responses = {
    product: "images",
    jobTitle: "engineer",
    utmCampaign: "c",
    utmContent: "d",
    utmMedium: "e",
    utmSource: "f",
    utmTerm: "g",
    latestFormSubmitUrl: "https://a.example/form",
    latestInternalReferringUrl: "https://a.example/from",
    hubspotUtk: "h",
    selfServe: true,
  };

  it("in one version is shown by the other, under its name there", async () => {
    const who = await world.createBound("viewer");
    const sent = { onboardingQuestions: { companyName: "acme", ...responses }, updatesOptIn: true };
    const told = await v1(who)("PATCH", "/identities/metadata", { ...sent, name: "identity" });
    const { onboardingQuestions, updatesOptIn, ...names } = told.json ?? {};
    assert.deepEqual(
      { onboardingQuestions, updatesOptIn },
      { ...sent, onboardingQuestions: { ...sent.onboardingQuestions, providers: [] } },
    );
    assert.deepEqual(names, { name: "identity", givenName: "", familyName: "" });
    const { outcome } = await v1(who)("PATCH", "/identities/metadata", { ...sent, name: "n", givenName: "g" });
    const rule = "is set by the service alone";
    assert.deepEqual(outcome, invalid(["name", `name ${rule}`], ["givenName", `givenName ${rule}`]));

    const body = { identityMetadata: { jobTitle: "boss" } };
    const seen = await who.rest("PATCH", "/identities:updateIdentityMetadata", body);
    const { uid, company, updatesOptIn: optIn, ...rest } = seen.json ?? {};
    assert.deepEqual([uid, company, optIn], [who.uid, "acme", true]);
    assert.deepEqual(rest, { ...names, ...responses, jobTitle: "boss" });

    const connection = connectTo({ baseUrl: world.url, token: staticToken(who.token) });
    const back = await connection.client(Identities).updateMetadata({ updatesOptIn: true });
    connection.close();
    assert.equal(back.onboardingQuestions?.jobTitle, "boss");
    assert.equal(back.onboardingQuestions?.companyName, "acme");
  });

  it("replaces all answers or none, and always the opt-in", async () => {
    const who = await world.createBound("viewer");
    const patch = (body: object) => v1(who)("PATCH", "/identities/metadata", body);
    await patch({ onboardingQuestions: { companyName: "acme", product: "p" }, updatesOptIn: true });
    const kept = (await patch({})).json as { onboardingQuestions: Record<string, unknown>; updatesOptIn: boolean };
    assert.deepEqual(
      [kept.onboardingQuestions.companyName, kept.onboardingQuestions.product, kept.updatesOptIn],
      ["acme", "p", false],
    );
    const changed = (await patch({ onboardingQuestions: { product: "q" } })).json as typeof kept;
    assert.deepEqual([changed.onboardingQuestions.companyName, changed.onboardingQuestions.product], ["", "q"]);
    const other = await v1(world.owner)("PATCH", "/identities/metadata", {});
    const { selfServe, providers: none, ...texts } = (other.json as typeof kept).onboardingQuestions;
    assert.deepEqual([selfServe, none, ...new Set(Object.values(texts))], [false, [], ""]);
  });

  const control = (field: string) => invalid([field, `${field} must not contain control characters`]);
  const providers = "onboardingQuestions.providers";
  const broken: readonly (readonly [questions: object, expected: object])[] = [
    [{ companyName: "a\u0001" }, control("onboardingQuestions.companyName")],
    [{ utmTerm: "a\u0001" }, control("onboardingQuestions.utmTerm")],
    [{ providers: ["aws"] }, invalid([providers, `${providers} must be empty: the service keeps none`])],
  ];
  for (const [onboardingQuestions, expected] of broken) {
    it(`is rejected with ${JSON.stringify(onboardingQuestions)}`, async () => {
      const response = await v1(world.owner)("PATCH", "/identities/metadata", { onboardingQuestions });
      assert.deepEqual(response.outcome, expected);
    });
  }

  it("is recorded as a change of the caller, and needs one", async () => {
    const who = await world.createBound("viewer");
    assert.equal((await v1(who)("PATCH", "/identities/metadata", {})).status, 200);
    const [row] = await world.write((tx) => tx.audit.listNewest(1));
    assert.deepEqual(
      [row?.type, row?.actorUid, row?.subjectUid],
      ["dev.chainguard.api.iam.identity.metadata.updated.v1", who.uid, who.uid],
    );
    assert.equal((await restAs(world.url, undefined, "/iam/v1")("PATCH", "/identities/metadata", {})).status, 401);
  });
});

describe("an identity outside of groups", () => {
  const identity = { subject: "somebody", issuer: "https://issuer.example" };

  it("cannot be created with any rights", async () => {
    for (const who of [world.owner, await world.caller(["identity.create"]), await world.createBound("viewer")]) {
      const response = await v1(who)("POST", "/identities", identity);
      assert.deepEqual([response.status, response.outcome.code], [501, "UNIMPLEMENTED"]);
      assert.match(response.text, /no identities outside of groups are created; create one in a group/);
      const connection = connectTo({ baseUrl: world.url, token: staticToken(who.token) });
      await assert.rejects(
        connection.client(Identities).create(identity),
        (error: ConnectError) => error.code === Code.Unimplemented,
      );
      connection.close();
    }
    assert.equal((await restAs(world.url, undefined, "/iam/v1")("POST", "/identities", identity)).status, 401);
  });
});
