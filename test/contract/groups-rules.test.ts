// The fields of groups and how they change (docs/api-rules.md#groups).
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { randomIds } from "../../src/kernel/ids.js";
import { type Harness, startHarness } from "../support/harness.js";
import { groupRow } from "../support/rows.js";
import {
  type Expected,
  expectNotFound,
  invalid,
  KIND,
  notPermittedField,
  ok,
  precondition,
  VERIFIED,
} from "./expectations.js";
import { connectGrpcJs } from "./grpc-js-client.js";
import { type Rest, restAs } from "./rest.js";
import type { WireClient } from "./wire.js";

const NAME_RULE = "name must match ^[a-z0-9 ._-]{1,}$";
const CONTROL = "description must not contain control characters";

let harness: Harness;
let org: string;
let token: string;
let rest: Rest;
let grpc: WireClient;

before(async () => {
  harness = await startHarness();
  ({ group: org, token } = await harness.organisation("acme.example"));
  rest = restAs(harness.url, token);
  grpc = connectGrpcJs(harness.url);
});

after(async () => {
  grpc.close();
  await harness.stop();
});

async function newGroup(parent = org): Promise<string> {
  const uid = randomIds.newUid(parent);
  const row = groupRow(uid, { name: "before", description: "as it was" });
  await harness.app.installation.store.write((tx) => tx.groups.insert(row));
  return uid;
}

// What a test changes, without what all tests leave as it is.
function changesOf(json: object | undefined): object {
  const { uid, createTime, updateTime, resourceLimits, ...rest } = json as Record<string, unknown>;
  assert.deepEqual([typeof uid, resourceLimits], ["string", {}]);
  for (const time of [createTime, updateTime]) assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  return rest;
}

describe("the path of a root group's creation", () => {
  it("is a path for that alone: any other route with an empty ** is 404", async () => {
    for (const version of ["v1", "v2beta1", "v2"]) {
      const at = restAs(harness.url, token, `/iam/${version}`);
      for (const method of ["GET", "PATCH", "PUT", "DELETE"]) {
        const { status, json } = await at(method, "/groups/", method === "GET" ? undefined : {});
        const text = `Not found: path: no such path /iam/${version}/groups/, did you mean /iam/${version}/groups?`;
        assert.deepEqual([status, json?.message], [404, text], method);
      }
      for (const kind of ["identities", "roles", "terms", "identityProviders"]) {
        assert.equal((await at("POST", `/${kind}/`, { name: "a" })).status, 404, kind);
      }
      assert.equal((await at("POST", "/groups", { name: "a" })).status, 405);
      assert.equal((await at("OPTIONS", "/groups/")).headers.get("allow"), "OPTIONS, POST");
    }
  });

  it("says that the parent is empty, and so nothing else may", async () => {
    const { status, json } = await rest("POST", `/groups/?parent=${org}`, { name: "a" });
    assert.deepEqual(
      [status, String(json?.message).startsWith("Invalid argument: parent")],
      [400, true],
      json?.message as string,
    );
  });
});

// Whole seconds have no fraction over Connect.
const timesOf = ({ createTime, updateTime }: Readonly<Record<string, unknown>>) => ({ createTime, updateTime });

describe("names and descriptions", () => {
  const cases: readonly { name: string; body: object | string; expect?: Expected }[] = [
    { name: "one letter", body: { name: "a" } },
    { name: "all that is allowed", body: { name: "az 09._-" } },
    { name: "a blank alone", body: { name: " " } },
    { name: "1,000 characters", body: { name: "a".repeat(1000) } },
    {
      name: "1,001 characters",
      body: { name: "a".repeat(1001) },
      expect: invalid(["name", "name must be at most 1000 characters"]),
    },
    { name: "an empty body", body: {}, expect: invalid(["name", NAME_RULE]) },
    { name: "no name", body: { description: "x" }, expect: invalid(["name", NAME_RULE]) },
    { name: "an empty name", body: { name: "" }, expect: invalid(["name", NAME_RULE]) },
    { name: "null", body: { name: null }, expect: invalid(["name", NAME_RULE]) },
    { name: "a capital", body: { name: "Core" }, expect: invalid(["name", NAME_RULE]) },
    { name: "an umlaut", body: { name: "grün" }, expect: invalid(["name", NAME_RULE]) },
    { name: "a slash", body: { name: "a/b" }, expect: invalid(["name", NAME_RULE]) },
    { name: "a newline at the end", body: { name: "core\n" }, expect: invalid(["name", NAME_RULE]) },
    { name: "a tab", body: { name: "a\tb" }, expect: invalid(["name", NAME_RULE]) },
    { name: "U+0000", body: { name: "a\0" }, expect: invalid(["name", "name must not hold U+0000"]) },
    { name: "wide letters", body: { name: "ａ" }, expect: invalid(["name", NAME_RULE]) },
    { name: "a number", body: { name: 5 }, expect: invalid(["name", "name must be a string"]) },
    { name: "an empty description", body: { name: "a", description: "" } },
    { name: "any script", body: { name: "a", description: "Größe – 大きさ 👩‍🚀" } },
    { name: "512 characters", body: { name: "a", description: "x".repeat(512) } },
    { name: "512 characters of two units each", body: { name: "a", description: "😀".repeat(512) } },
    {
      name: "513 characters",
      body: { name: "a", description: "x".repeat(513) },
      expect: invalid(["description", "description must be at most 512 characters"]),
    },
    {
      name: "513 characters of two units each",
      body: { name: "a", description: "😀".repeat(513) },
      expect: invalid(["description", "description must be at most 512 characters"]),
    },
    ...["a\nb", "\u001f", "\u007f", "\u0085", "\u2028"].map((description) => ({
      name: `a description with ${visible(description)}`,
      body: { name: "a", description },
      expect: invalid(["description", CONTROL]),
    })),
    {
      name: "half a surrogate pair",
      body: '{"name":"a","description":"\\ud800"}',
      expect: invalid(["description", "description must not hold half a surrogate pair"]),
    },
    {
      name: "both wrong",
      body: { name: "A", description: "\n" },
      expect: invalid(["name", NAME_RULE], ["description", CONTROL]),
    },
  ];
  for (const { name, body, expect } of cases) {
    it(`${expect === undefined ? "takes" : "refuses"} ${name}`, async () => {
      const created = await rest("POST", `/groups/${org}`, body);
      const uid = await newGroup();
      const updated = await rest("PATCH", `/groups/${uid}?updateMask=*`, body);
      if (expect !== undefined) {
        assert.deepEqual([created.outcome, updated.outcome], [expect, expect]);
        return;
      }
      const whole = { description: "", verified: false, ...(body as object) };
      assert.deepEqual([changesOf(created.json), changesOf(updated.json)], [whole, whole]);
    });
  }

  it("prints empty fields over REST, and over Connect only what is set", async () => {
    const { json } = await rest("POST", `/groups/${org}`, { name: "bare" });
    const connect = restAs(harness.url, token, "/chainguard.platform.iam.v2beta1.GroupsService");
    const same = (await connect("POST", "/GetGroup", { uid: json?.uid })).json ?? {};
    assert.deepEqual(Object.keys(same).sort(), ["createTime", "name", "uid", "updateTime"]);
    assert.deepEqual({ ...same, description: "", verified: false, resourceLimits: {} }, { ...json, ...timesOf(same) });
  });
});

function visible(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

describe("updates", () => {
  const both = { name: "after", description: "new" };
  const was = { name: "before", description: "as it was" };
  const unknown = (path: string) => invalid(["updateMask", `updateMask: ${path} is not a field of a group`]);
  const cases: readonly { name: string; query?: string; body?: object; expect: Expected | object }[] = [
    { name: "changes the keys that are there", body: { name: "after" }, expect: { ...was, name: "after" } },
    { name: "clears by an empty text", body: { description: "" }, expect: { ...was, description: "" } },
    { name: "clears by null", body: { description: null }, expect: { ...was, description: "" } },
    { name: "clears no required field by an empty text", body: { name: "" }, expect: invalid(["name", NAME_RULE]) },
    { name: "changes nothing without keys", body: {}, expect: was },
    {
      name: "passes over keys nobody knows",
      body: { colour: "red", description: "new" },
      expect: { ...was, description: "new" },
    },
    {
      name: "passes over keys that are not the caller's",
      body: { createTime: "2000-01-01T00:00:00Z", status: 3, resourceLimits: { idps: 1 }, name: "after" },
      expect: { ...was, name: "after" },
    },
    {
      name: "rejects what the operator sets",
      body: { verified: true, kind: "ORG_KIND_DEV", name: "after" },
      expect: notPermittedField(VERIFIED, KIND),
    },
    {
      name: "passes what the operator sets as it is stored",
      body: { verified: false, kind: "ORG_KIND_UNSPECIFIED", name: "after" },
      expect: { ...was, name: "after" },
    },
    { name: "changes nothing without body and mask", expect: was },
    { name: "changes nothing without body and with an empty mask", query: "updateMask=", expect: was },
    {
      name: "takes an empty mask for none",
      query: "updateMask=",
      body: { name: "after" },
      expect: { ...was, name: "after" },
    },
    {
      name: "changes what the mask names alone",
      query: "updateMask=description",
      body: both,
      expect: { ...was, description: "new" },
    },
    {
      name: "does not look at what the mask leaves out",
      query: "updateMask=description",
      body: { name: "NO", description: "new" },
      expect: { ...was, description: "new" },
    },
    { name: "takes a list", query: "updateMask=name,description", body: both, expect: both },
    { name: "takes a list with blanks", query: "updateMask=name,%20description", body: both, expect: both },
    {
      name: "takes the parameter in snake case",
      query: "update_mask=name",
      body: both,
      expect: { ...was, name: "after" },
    },
    {
      name: "clears what is masked and absent",
      query: "updateMask=description",
      body: { name: "after" },
      expect: { ...was, description: "" },
    },
    {
      name: "clears what is masked without a body",
      query: "updateMask=description",
      expect: { ...was, description: "" },
    },
    {
      name: "clears nothing required",
      query: "updateMask=name,description",
      body: { description: "new" },
      expect: invalid(["name", NAME_RULE]),
    },
    {
      name: "replaces all by a star",
      query: "updateMask=*",
      body: { name: "after" },
      expect: { name: "after", description: "" },
    },
    {
      name: "replaces all by a star with all that is required",
      query: "updateMask=*",
      body: { description: "new" },
      expect: invalid(["name", NAME_RULE]),
    },
    {
      name: "lets a star stand alone",
      query: "updateMask=*,name",
      body: both,
      expect: invalid(["updateMask", "updateMask: * must stand alone"]),
    },
    {
      name: "ignores what the service sets, in camel case",
      query: "updateMask=createTime,updateTime,resourceLimits,uid,name",
      body: both,
      expect: { ...was, name: "after" },
    },
    {
      name: "ignores what the service sets, in snake case",
      query: "updateMask=create_time,update_time,resource_limits,uid,name",
      body: both,
      expect: { ...was, name: "after" },
    },
    {
      name: "rejects what the operator sets in the mask",
      query: "updateMask=verified,kind,status",
      body: { verified: true, kind: "ORG_KIND_DEV" },
      expect: notPermittedField(VERIFIED, KIND),
    },
    {
      name: "ignores parts of what the service sets",
      query: "updateMask=create_time.seconds,resource_limits.repositories",
      body: both,
      expect: was,
    },
    { name: "refuses a field there is not", query: "updateMask=name,colour", body: both, expect: unknown("colour") },
    { name: "refuses a part of a text", query: "updateMask=name.first", body: both, expect: unknown("name.first") },
    {
      name: "refuses what is no path",
      query: "updateMask=name[0]",
      body: both,
      expect: invalid(["updateMask", "updateMask must be field paths separated by commas"]),
    },
    {
      name: "refuses two masks",
      query: "updateMask=name&updateMask=description",
      body: both,
      expect: invalid(["updateMask", "updateMask is given twice"]),
    },
    { name: "moves nothing", query: "updateMask=parent", body: { ...both, parent: "x" }, expect: unknown("parent") },
    {
      name: "lets the body name no other uid",
      body: { uid: "x", name: "after" },
      expect: invalid(["uid", "uid is set by the path, the body must not say otherwise"]),
    },
  ];
  for (const { name, query = "", body, expect } of cases) {
    it(name, async () => {
      const uid = await newGroup();
      const response = await rest("PATCH", `/groups/${uid}?${query}`, body);
      const failed = "code" in expect;
      if (failed) assert.deepEqual(response.outcome, expect);
      const stored = await rest("GET", `/groups/${uid}`);
      if (!failed) assert.equal(response.text, stored.text);
      assert.deepEqual(changesOf(stored.json), { verified: false, ...(failed ? was : expect) });
    });
  }

  it("takes both spellings of a path over gRPC", async () => {
    for (const paths of [["createTime"], ["create_time"], ["resourceLimits", "resource_limits"]]) {
      const uid = await newGroup();
      const outcome = await grpc.call({
        method: "UpdateGroup",
        request: { group: { uid }, updateMask: { paths } },
        token,
      });
      assert.equal(outcome.code, "OK", paths.join());
    }
  });

  it("tells the time of the change and of nothing else", async () => {
    const uid = await newGroup();
    const before = (await rest("GET", `/groups/${uid}`)).json;
    for (const body of [undefined, {}]) assert.deepEqual((await rest("PATCH", `/groups/${uid}`, body)).json, before);
    const bare = await grpc.call({ method: "UpdateGroup", request: { group: { uid } }, token });
    assert.equal(bare.code, "OK", "over gRPC nothing is populated");
    assert.deepEqual((await rest("GET", `/groups/${uid}`)).json, before);
    const { json } = await rest("PATCH", `/groups/${uid}`, { name: "after" });
    assert.equal(json?.createTime, before?.createTime);
    assert.ok(Math.abs(Date.parse(String(json?.updateTime)) - Date.now()) < 60_000);
  });

  it("leaves a verified root its name and its kind", async () => {
    const { group, token: owner } = await harness.organisation("verified.example");
    const { store } = harness.app.installation;
    const context = { ids: randomIds, nowMs: Date.now() };
    await store.write((tx) => verifyGroup(tx, group, "ORG_KIND_CUSTOMER", context));
    const call = restAs(harness.url, owner);
    const frozen = precondition("GROUP_VERIFIED", "cannot rename a verified group");
    const attempts: readonly [query: string, body: object, expect: Expected | undefined][] = [
      ["", { name: "other.example" }, frozen],
      ["?updateMask=name", { name: "other.example" }, frozen],
      ["?updateMask=*", { name: "other.example", verified: false }, frozen],
      [
        "",
        { name: "verified.example", verified: false, kind: "ORG_KIND_UNSPECIFIED" },
        notPermittedField(VERIFIED, KIND),
      ],
      ["", { name: "verified.example", verified: true, kind: "ORG_KIND_CUSTOMER" }, undefined],
      ["?updateMask=verified,kind", { verified: false }, notPermittedField(VERIFIED, KIND)],
      ["?updateMask=verified,kind", { verified: true, kind: "ORG_KIND_CUSTOMER" }, undefined],
      ["?updateMask=*", { name: "verified.example", verified: true, kind: "ORG_KIND_DEV" }, notPermittedField(KIND)],
      ["?updateMask=*", { name: "verified.example", description: "ours" }, undefined],
    ];
    for (const [query, body, expect] of attempts) {
      const { outcome } = await call("PATCH", `/groups/${group}${query}`, body);
      if (expect) assert.deepEqual(outcome, expect, query);
      else assert.equal(outcome.code, "OK", query);
    }
    const { json } = await call("GET", `/groups/${group}`);
    assert.deepEqual(changesOf(json), {
      name: "verified.example",
      description: "ours",
      verified: true,
      kind: "ORG_KIND_CUSTOMER",
    });
  });
});

describe("deletion", () => {
  it("goes from the bottom up, and then all is gone", async () => {
    const upper = await newGroup();
    const lower = await newGroup(upper);
    for (const uid of [lower, upper]) {
      const { status, text } = await rest("DELETE", `/groups/${uid}`);
      assert.deepEqual([status, text], [200, ""]);
      assert.deepEqual((await rest("GET", `/groups/${uid}`)).outcome, expectNotFound(uid));
      assert.deepEqual((await rest("DELETE", `/groups/${uid}`)).outcome, expectNotFound(uid));
    }
    const listed = await rest("GET", `/groups?uidp.descendants_of=${upper}`);
    assert.deepEqual(listed.outcome, ok({ groups: [], totalCount: "0", skipped: 0 }));
  });

  it("takes the binding of its creator with an empty root", async () => {
    const own = await harness.organisation("short.example");
    const call = restAs(harness.url, own.token);
    assert.equal((await call("DELETE", `/groups/${own.group}`)).status, 200);
    assert.deepEqual((await call("GET", "/groups")).outcome, ok({ groups: [], totalCount: "0", skipped: 0 }));
    assert.equal((await call("GET", `/groups/${own.group}`)).status, 403);
  });
});
