// Who finds an organisation, who may found one, and which can be verified.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { builtinIdentityUid, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { type Harness, startHarness } from "../support/harness.js";
import { groupRow } from "../support/rows.js";
import { expectNotFound, notPermitted, ok, precondition, resourceExhausted } from "./expectations.js";
import { restAs } from "./rest.js";

const DAY_MS = 24 * 60 * 60 * 1000;

describe("finding an organisation", () => {
  let harness: Harness;
  let org: string;

  before(async () => {
    harness = await startHarness();
    org = (await harness.organisation("acme.example")).group;
    await harness.organisation("unverified.example");
    const { store } = harness.app.installation;
    await store.write((tx) => verifyGroup(tx, org, undefined, { ids: randomIds, nowMs: Date.now() }));
  });
  after(() => harness.stop());

  const none = expectNotFound("", "no verified organisation matches the caller's e-mail domain");
  const cases: readonly { email: string; eligible: boolean; finds: boolean }[] = [
    { email: "ann@acme.example", eligible: true, finds: true },
    { email: "Ann@ACME.Example", eligible: true, finds: true },
    { email: '"a@b"@acme.example', eligible: true, finds: true },
    { email: "ann@unverified.example", eligible: true, finds: false },
    { email: "ann@sub.acme.example", eligible: true, finds: false },
    { email: "ann@xacme.example", eligible: true, finds: false },
    { email: "ann@acme.example.evil.example", eligible: true, finds: false },
    { email: "acme.example@gmail.com", eligible: false, finds: false },
    { email: "ann@GoogleMail.com", eligible: false, finds: false },
    { email: "acme.example", eligible: false, finds: false },
    { email: "ann@", eligible: false, finds: false },
    { email: "", eligible: false, finds: false },
  ];
  for (const { email, eligible, finds } of cases) {
    it(`${finds ? "finds" : "does not find"} one for ${email || "no address"}`, async () => {
      const call = restAs(harness.url, (await harness.identity({ email })).token);
      assert.deepEqual((await call("GET", "/groups:checkEligibility")).outcome, ok({ eligible }));
      const { outcome, json } = await call("GET", "/groups:lookupGroup");
      if (finds) assert.equal((json as { group: { uid: string } }).group.uid, org);
      else assert.deepEqual(outcome, none);
      const requested = await call("POST", `/groups/${org}:requestGroupAccess`, {});
      assert.deepEqual(requested.outcome, finds ? ok({}) : none);
    });
  }

  it("shows a person no more than that", async () => {
    const call = restAs(harness.url, (await harness.identity({ email: "ann@acme.example" })).token);
    await call("POST", `/groups/${org}:requestGroupAccess`, {});
    assert.equal((await call("GET", `/groups/${org}`)).status, 403);
  });

  it("takes one request a day", async () => {
    const person = await harness.identity({ email: "bob@acme.example" });
    const path = `/groups/${org}:requestGroupAccess`;
    const ask = async () => restAs(harness.url, await harness.token(person.uid))("POST", path, {});
    assert.equal((await ask()).status, 200);
    const again = await ask();
    const outcome = JSON.parse(
      JSON.stringify(again.outcome).replace(/"retryDelay":"[\d.]+s"/, '"retryDelay":"<delay>"'),
    );
    assert.deepEqual(outcome, resourceExhausted("access to this group was requested recently"));
    assert.equal(again.status, 429);
    const seconds = Number(again.headers.get("retry-after"));
    assert.ok(seconds > 86_000 && seconds <= 86_400, `${seconds}`);
    harness.skewMs = DAY_MS;
    assert.equal((await ask()).status, 200, "a day later");
    assert.equal((await ask()).status, 429);
    harness.skewMs = 0;
  });

  it("leaves requests nowhere when the group goes", async () => {
    const own = await harness.organisation("gone.example");
    const { store } = harness.app.installation;
    await store.write((tx) => verifyGroup(tx, own.group, undefined, { ids: randomIds, nowMs: Date.now() }));
    const call = restAs(harness.url, (await harness.identity({ email: "ann@gone.example" })).token);
    assert.equal((await call("POST", `/groups/${own.group}:requestGroupAccess`, {})).status, 200);
    assert.equal((await restAs(harness.url, own.token)("DELETE", `/groups/${own.group}`)).status, 200);
    assert.deepEqual((await call("GET", "/groups:lookupGroup")).outcome, none);
  });
});

describe("verification", () => {
  it("is for roots named like a domain nobody else has", async () => {
    const harness = await startHarness();
    const { store } = harness.app.installation;
    const verify = (uid: string) =>
      store.write((tx) => verifyGroup(tx, uid, undefined, { ids: randomIds, nowMs: Date.now() }));
    const invalid = (description: string) => ({
      message: (precondition("", description) as { message: string }).message,
    });
    const first = await harness.organisation("acme.example");
    const second = await harness.organisation("plain");
    const child = randomIds.newUid(first.group);
    const namesake = randomIds.newUid();
    await store.write(async (tx) => {
      await tx.table(groupKind).insert(groupRow(child, { name: "sub.example" }));
      await tx.table(groupKind).insert(groupRow(namesake, { name: "acme.example" }));
    });
    await verify(first.group);
    await verify(first.group);
    await assert.rejects(verify(child), invalid("only a root group can be verified"));
    await assert.rejects(
      verify(second.group),
      invalid("a verified group must be named like a domain, such as example.org"),
    );
    await assert.rejects(verify(namesake), invalid("another verified group has this name"));
    await harness.stop();
  });
});

describe("founding an organisation", () => {
  const rules = [
    { rule: "users", may: { person: true, owner: true, workload: false, anonymous: false } },
    { rule: "owners", may: { person: false, owner: true, workload: false, anonymous: false } },
    { rule: "off", may: { person: false, owner: false, workload: false, anonymous: false } },
  ];
  const founders = "root groups are created by people only, who signed in at a login provider of the service";
  const rejections: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    users: { workload: founders, anonymous: founders },
    owners: { person: "root groups are created by people who own one only", workload: founders, anonymous: founders },
    off: Object.fromEntries(
      ["person", "owner", "workload", "anonymous"].map((who) => [who, "root groups are created on the host only"]),
    ),
  };
  for (const { rule, may } of rules) {
    it(`is for ${rule}`, async () => {
      const harness = await startHarness({ rootCreation: rule });
      const own = await harness.organisation("acme.example");
      const workload = await harness.identity({}, own.group);
      await harness.bind(workload.uid, "owner", own.group);
      const anonymous = builtinIdentityUid("anonymous");
      const tokens = {
        person: (await harness.identity()).token,
        owner: own.token,
        workload: workload.token,
        anonymous: await harness.token(anonymous),
      };
      for (const [who, token] of Object.entries(tokens)) {
        // A path that ends where the parent would begin is a root group's, in every version.
        const overRest = [];
        for (const version of ["v1", "v2beta1", "v2"]) {
          const founded = await restAs(harness.url, token, `/iam/${version}`)("POST", "/groups/", { name: "new" });
          overRest.push(founded.outcome);
        }
        if (!may[who as keyof typeof may]) {
          const refused = notPermitted(rejections[rule]?.[who] ?? "");
          assert.deepEqual(overRest, [refused, refused, refused], who);
          continue;
        }
        let founded = "";
        for (const one of overRest) {
          assert.ok("result" in one, who);
          const { uid, id = uid } = one.result as { uid?: string; id?: string };
          founded = String(id);
          assert.match(founded, /^[0-9a-f]{40}$/, who);
        }
        const rest = restAs(harness.url, token);
        assert.equal((await rest("POST", `/groups/${founded}`, { name: "child" })).status, 200, "its founder owns it");
      }
      await harness.stop();
    });
  }
});
