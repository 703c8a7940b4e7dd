// Who sees what, and from when on: what is hidden, what is revoked, who finds an
// organisation and who may found one.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { toCapabilitySet } from "../../src/kernel/capability-set.js";
import { builtinIdentityUid, randomIds } from "../../src/kernel/ids.js";
import { bitOf } from "../../src/pipeline/auth/authorize.js";
import { type Harness, startHarness } from "../support/harness.js";
import { bindingRow, groupRow, roleRow } from "../support/rows.js";
import {
  expectNotFound,
  notPermitted,
  ok,
  permissionDenied,
  precondition,
  resourceExhausted,
  unauthenticated,
} from "./expectations.js";
import { connectGrpcJs } from "./grpc-js-client.js";
import { type Rest, type RestResponse, restAs } from "./rest.js";

const DAY_MS = 24 * 60 * 60 * 1000;

describe("what a caller may not see", () => {
  let harness: Harness;
  let org: string;
  let foreign: string;
  let rest: Rest;

  before(async () => {
    harness = await startHarness();
    const ours = await harness.organisation("acme.example");
    org = ours.group;
    rest = restAs(harness.url, ours.token);
    foreign = (await harness.organisation("other.example")).group;
  });
  after(() => harness.stop());

  const calls: readonly { name: string; send: (uid: string, call: Rest) => Promise<RestResponse>; what: string }[] = [
    { name: "get", send: (uid, call) => call("GET", `/groups/${uid}`), what: "groups.list" },
    { name: "update", send: (uid, call) => call("PATCH", `/groups/${uid}`, { name: "NO" }), what: "groups.update" },
    { name: "delete", send: (uid, call) => call("DELETE", `/groups/${uid}`), what: "groups.delete" },
    { name: "create", send: (uid, call) => call("POST", `/groups/${uid}`, { name: "NO" }), what: "groups.create" },
  ];
  for (const { name, send, what } of calls) {
    it(`looks to ${name} like what is not there`, async () => {
      const child = randomIds.newUid(foreign);
      await harness.app.installation.store.write((tx) => tx.groups.insert(groupRow(child)));
      const pairs = [
        [foreign, randomIds.newUid()],
        [child, randomIds.newUid(foreign)],
        [child, randomIds.newUid(randomIds.newUid())],
      ] as const;
      for (const [real, imagined] of pairs) {
        const [one, other] = [await send(real, rest), await send(imagined, rest)];
        assert.deepEqual(one.outcome, permissionDenied(`${what} at ${real}`));
        assert.equal(one.status, other.status);
        assert.equal(one.text.replaceAll(real, "*"), other.text.replaceAll(imagined, "*"));
        const fields = ({ headers }: RestResponse) =>
          [...headers].filter(([field]) => !/^(date|content-length|x-request-id)$/.test(field));
        assert.deepEqual(fields(one), fields(other));
      }
    });
  }

  it("looks in lists like what is not there", async () => {
    for (const filter of ["descendants_of", "children_of", "ancestors_of", "ids"]) {
      const [one, other] = await Promise.all([
        rest("GET", `/groups?uidp.${filter}=${foreign}`),
        rest("GET", `/groups?uidp.${filter}=${randomIds.newUid()}`),
      ]);
      assert.deepEqual([one.status, one.text], [200, other.text], filter);
    }
  });

  it("is hidden from those who may change things and not read them", async () => {
    const { store } = harness.app.installation;
    const writer = await harness.identity();
    const role = randomIds.newUid(org);
    const { CAP_IAM_GROUPS_CREATE, CAP_IAM_GROUPS_UPDATE, CAP_IAM_GROUPS_DELETE } = Capability;
    const capabilities = toCapabilitySet(
      [CAP_IAM_GROUPS_CREATE, CAP_IAM_GROUPS_UPDATE, CAP_IAM_GROUPS_DELETE].map(bitOf),
    );
    await store.write(async (tx) => {
      await tx.roles.insert(roleRow(role, { groupUid: org, capabilities }));
      await tx.roleBindings.insert(bindingRow(randomIds.newUid(org), writer.uid, role));
    });
    const call = restAs(harness.url, writer.token);
    const ghost = randomIds.newUid(org);
    for (const { name, send, what } of calls) {
      assert.deepEqual((await send(ghost, call)).outcome, permissionDenied(`${what} at ${ghost}`), name);
    }
    const child = await call("POST", `/groups/${org}`, { name: "written" });
    assert.equal(child.status, 200, "what it may do it can");
  });

  it("is hidden from the next call on when a binding goes", async () => {
    const guest = await harness.identity();
    const binding = await harness.bind(guest.uid, "viewer", org);
    const call = restAs(harness.url, guest.token);
    assert.equal((await call("GET", `/groups/${org}`)).status, 200);
    assert.notEqual((await call("GET", "/groups")).json?.totalCount, "0");
    await harness.app.installation.store.write((tx) => tx.roleBindings.delete(binding));
    assert.deepEqual((await call("GET", `/groups/${org}`)).outcome, permissionDenied(`groups.list at ${org}`));
    assert.equal((await call("GET", "/groups")).json?.totalCount, "0");
  });

  it("includes everything once the identity is gone, on every protocol", async () => {
    const { store } = harness.app.installation;
    const guest = await harness.identity();
    const binding = await harness.bind(guest.uid, "viewer", org);
    const call = restAs(harness.url, guest.token);
    const grpc = connectGrpcJs(harness.url);
    const get = { method: "GetGroup", request: { uid: org }, token: guest.token } as const;
    assert.equal((await call("GET", `/groups/${org}`)).status, 200);
    assert.equal((await grpc.call(get)).code, "OK");
    await store.write(async (tx) => {
      await tx.roleBindings.delete(binding);
      await tx.identities.delete(guest.uid);
    });
    const response = await call("GET", `/groups/${org}`);
    assert.deepEqual([response.status, response.outcome], [401, unauthenticated()]);
    assert.equal(response.headers.get("www-authenticate"), 'Bearer realm="arbor", error="invalid_token"');
    assert.deepEqual(await grpc.call(get), unauthenticated());
    grpc.close();
  });
});

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
      await tx.groups.insert(groupRow(child, { name: "sub.example" }));
      await tx.groups.insert(groupRow(namesake, { name: "acme.example" }));
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
      const grpc = connectGrpcJs(harness.url);
      for (const [who, token] of Object.entries(tokens)) {
        const outcome = await grpc.call({ method: "CreateGroup", request: { group: { name: "new" } }, token });
        // A path that ends where the parent would begin is a root group's, in every version.
        const overRest = [];
        for (const version of ["v1", "v2beta1", "v2"]) {
          const founded = await restAs(harness.url, token, `/iam/${version}`)("POST", "/groups/", { name: "new" });
          overRest.push(founded.outcome);
        }
        if (!may[who as keyof typeof may]) {
          const refused = notPermitted(rejections[rule]?.[who] ?? "");
          assert.deepEqual([outcome, ...overRest], [refused, refused, refused, refused], who);
          continue;
        }
        for (const one of overRest) {
          assert.ok("result" in one, who);
          const { uid, id = uid } = one.result as { uid?: string; id?: string };
          assert.match(String(id), /^[0-9a-f]{40}$/, who);
        }
        assert.ok("result" in outcome, who);
        const { uid } = outcome.result as { uid: string };
        assert.match(uid, /^[0-9a-f]{40}$/, who);
        const rest = restAs(harness.url, token);
        assert.equal((await rest("POST", `/groups/${uid}`, { name: "child" })).status, 200, "its founder owns it");
      }
      grpc.close();
      await harness.stop();
    });
  }
});
