// Repos over REST: what they may be, how they change, which lists show them,
// and what goes with them.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { groupKind } from "../../src/store/iam/groups.js";
import { invalid, precondition } from "../contract/expectations.js";
import type { RestResponse } from "../contract/rest.js";
import { childUid, groupRow } from "../support/rows.js";
import { type RegistryWorld, startRegistryWorld } from "./registry-world.js";

let world: RegistryWorld;
before(async () => {
  world = await startRegistryWorld();
});
after(() => world.stop());

let made = 0;
const fresh = (fields: object = {}) => ({ name: `repo-${made++}`, ...fields });
const get = async (uid: string) => (await world.call("GET", `/repos/${uid}`)).json;
const patch = (uid: string, body: object, mask?: string) =>
  world.call("PATCH", `/repos/${uid}${mask === undefined ? "" : `?updateMask=${mask}`}`, body);

const reposIn = (json: RestResponse["json"]) => (json?.repos ?? []) as { uid: string; name: string }[];

const full = {
  description: "what it is for",
  catalogTier: "CATALOG_TIER_FIPS",
  bundles: ["fips", "base", "application"],
  aliases: ["z/nginx:1.2", "docker.io/a:latest"],
  activeTags: ["latest", "1.2", "0-a"],
  customOverlay: {
    contents: {
      packages: ["zsh", "bash"],
      runtimeRepositories: ["https://packages.example/os"],
      runtimeKeyring: [{ name: "k.pub", content: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n" }],
    },
    environment: { PATH: "/bin", EMPTY: "" },
    annotations: { "example.com/team": "a\nb" },
    accounts: {
      runAs: "app",
      users: [{ username: "app", uid: 65532, gid: 65532, groupName: "app", shell: "/bin/sh", homeDir: "/home/app" }],
      groups: [{ groupname: "app", gid: 65532, members: ["app"] }],
    },
    certificates: {
      additional: [{ name: "ca.pem", content: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" }],
      providers: ["ca-certificates"],
    },
    guardedEntrypoint: true,
    preflight: [
      { tcp: "db:5432", path: "", timeout: "1m30s", interval: "500ms", onFailure: "ON_FAILURE_CONTINUE" },
      { tcp: "", path: "/var/run/ready", timeout: "", interval: "", onFailure: "ON_FAILURE_FAIL" },
    ],
    commandOverride: { command: ["sh", "-c", "a\nb"], mode: "MODE_PREPEND" },
    failMode: "FAIL_MODE_OPEN",
  },
};

describe("a repo", () => {
  it("is shown as it was created, every array in its order", async () => {
    const body = fresh(full);
    const { json, status, text } = await world.call("POST", `/repos/${world.child}`, body);
    assert.equal(status, 200, text);
    const { uid, createTime, updateTime, ...rest } = json ?? {};
    assert.match(String(uid), new RegExp(`^${world.child}/[0-9a-f]{16}$`));
    assert.match(String(createTime), /^\d{4}-\d\d-\d\dT/);
    assert.equal(updateTime, createTime);
    assert.deepEqual(rest, body);
    assert.deepEqual(await get(String(uid)), json);
  });

  const nameRule = "name must match ^[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*$ and be at most 128 characters";
  for (const name of ["", "..", " ", "-x", "a..b", "a___b", "a_", "A", "a b", "a/b", "ä", "a".repeat(129)]) {
    it(`named ${JSON.stringify(name.slice(0, 9))} is rejected, since no registry has such a path`, async () => {
      const { outcome } = await world.call("POST", `/repos/${world.root}`, { name });
      assert.deepEqual(outcome, invalid(["name", name === "" ? `${nameRule}: name is required` : nameRule]));
    });
  }
  for (const name of ["0", "a.b", "a_b", "a__b", "a---b", "a".repeat(128)]) {
    it(`may be named ${name.slice(0, 9)}`, async () => {
      assert.equal((await world.call("POST", `/repos/${world.root}`, { name })).status, 200);
    });
  }

  it("does not lie so deep that its path is too long for a registry", async () => {
    let group = world.root;
    for (let depth = 2; depth <= 12; depth++) {
      group = childUid(group, 7);
      const row = groupRow(group);
      await world.write((tx) => tx.table(groupKind).insert(row));
    }
    const rule = "must be shorter in a group this deep: paths in a registry have at most 255 characters";
    const broken = invalid(["name", `name ${rule}`]);
    // 40 characters, 11 times 17 and a slash leave 27.
    assert.deepEqual((await world.call("POST", `/repos/${group}`, { name: "a".repeat(28) })).outcome, broken);
    assert.equal((await world.call("POST", `/repos/${group}`, { name: "a".repeat(27) })).status, 200);
  });

  const overlay = "customOverlay";
  const isAddress = ".tcp must be a host and a port, such as db:5432";
  const isDuration = "must be a duration such as 30s or 500ms, more than zero and at most an hour";
  const preflights: readonly (readonly [object, string])[] = [
    [{}, " must have either tcp or path"],
    [{ tcp: "db:1", path: "/x" }, " must have either tcp or path"],
    ...["db", "db:0", "db:65536", ":1", "http://db:1", "db:1/x", "a b:1", "[::1]", "-x:1"].map(
      (tcp) => [{ tcp }, isAddress] as const,
    ),
    ...["x", "./x", "/a\nb", `/${"x".repeat(512)}`].map(
      (path) => [{ path }, ".path must be an absolute path of at most 512 characters"] as const,
    ),
    ...["30", "0s", "-1s", "1h0.000001s", "s", "1d", "1 s"].map(
      (timeout) => [{ path: "/x", timeout }, `.timeout ${isDuration}`] as const,
    ),
    [{ path: "/x", interval: "soon" }, `.interval ${isDuration}`],
    [{ path: "/x", onFailure: 3 }, ".onFailure must be a value that the API knows"],
  ];
  const large = { C: "x".repeat(65_536), D: "y".repeat(65_536) };
  const rules: readonly { body: object; broken: readonly [string, string] }[] = [
    { body: { description: "a\nb" }, broken: ["description", "description must not contain control characters"] },
    {
      body: { bundles: ["base", "golden"] },
      broken: [
        "bundles",
        "bundles must each be one of application, base, byol, ai, ai-gpu, featured, fips, commercial, emeritoss",
      ],
    },
    {
      body: { aliases: ["nginx"] },
      broken: ["aliases", "aliases must each match ^[a-zA-Z0-9_.\\-/]*[a-zA-Z0-9_.-]:[a-zA-Z0-9_.-]+$"],
    },
    {
      body: { activeTags: ["latest", "-x"] },
      broken: ["activeTags", "activeTags must each match ^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$"],
    },
    {
      body: { activeTags: Array.from({ length: 1_001 }, () => "a") },
      broken: ["activeTags", "activeTags must be at most 1000"],
    },
    {
      body: { aliases: Array.from({ length: 100 }, (_, i) => `${"a".repeat(400)}:${i}`) },
      broken: ["aliases", "aliases must be at most 32768 characters together"],
    },
    {
      body: { customOverlay: { environment: { A: "x".repeat(65_536), B: "y".repeat(65_536), ...large } } },
      broken: [overlay, "customOverlay must be at most 262144 characters as JSON"],
    },
    {
      body: { customOverlay: { environment: { CHAINGUARD_X: "1" } } },
      broken: [overlay, "customOverlay.environment must not have names that contain = or begin with CHAINGUARD_"],
    },
    {
      body: { customOverlay: { environment: { "A=B": "1" } } },
      broken: [overlay, "customOverlay.environment must not have names that contain = or begin with CHAINGUARD_"],
    },
    {
      body: { customOverlay: { annotations: { "dev.chainguard.x": "1" } } },
      broken: [
        overlay,
        "customOverlay.annotations must not have keys that begin with dev.chainguard. or org.opencontainers.",
      ],
    },
    {
      body: { customOverlay: { annotations: { "org.opencontainers.image.title": "1" } } },
      broken: [
        overlay,
        "customOverlay.annotations must not have keys that begin with dev.chainguard. or org.opencontainers.",
      ],
    },
    {
      body: { customOverlay: { contents: { packages: [""] } } },
      broken: [overlay, "customOverlay.contents.packages must each be the name of a package"],
    },
    {
      body: { customOverlay: { contents: { runtimeRepositories: ["file:///etc"] } } },
      broken: [overlay, "customOverlay.contents.runtimeRepositories must each be an http or https URL"],
    },
    {
      body: { customOverlay: { contents: { runtimeKeyring: [{ name: "../k", content: "x" }] } } },
      broken: [
        overlay,
        "customOverlay.contents.runtimeKeyring must each have the name of a file and a public key in PEM",
      ],
    },
    {
      body: { customOverlay: { accounts: { users: [{ username: "a:b" }] } } },
      broken: [overlay, "customOverlay.accounts.users must each have a username and ids from 0 to 2147483647"],
    },
    {
      body: { customOverlay: { accounts: { groups: [{ groupname: "a", gid: -1 }] } } },
      broken: [overlay, "customOverlay.accounts.groups must each have a groupname and an id from 0 to 2147483647"],
    },
    {
      body: { customOverlay: { certificates: { additional: [{ name: "ca", content: "text" }] } } },
      broken: [
        overlay,
        "customOverlay.certificates.additional must each have the name of a file and a certificate in PEM",
      ],
    },
    ...preflights.map(([preflight, rule]) => ({
      body: { customOverlay: { preflight: [{ path: "/x" }, preflight] } },
      broken: [overlay, `customOverlay.preflight[1]${rule}`] as const,
    })),
    {
      body: { customOverlay: { preflight: Array.from({ length: 33 }, () => ({ path: "/x" })) } },
      broken: [overlay, "customOverlay.preflight must be at most 32"],
    },
    {
      body: { customOverlay: { commandOverride: {} } },
      broken: [overlay, "customOverlay.commandOverride.command is required"],
    },
    {
      body: { customOverlay: { commandOverride: { command: ["sh", ""] } } },
      broken: [overlay, "customOverlay.commandOverride.command must each be a word without control characters"],
    },
    {
      body: { customOverlay: { commandOverride: { command: ["sh", "x".repeat(32_768)] } } },
      broken: [overlay, "customOverlay.commandOverride.command must be at most 32768 characters together"],
    },
    {
      body: { customOverlay: { commandOverride: { command: ["sh"], mode: 4 } } },
      broken: [overlay, "customOverlay.commandOverride.mode must be a value that the API knows"],
    },
    {
      body: { customOverlay: { failMode: 3 } },
      broken: [overlay, "customOverlay.failMode must be a value that the API knows"],
    },
    { body: { sync_config: {} }, broken: ["sync_config", "sync_config.source is required"] },
  ];
  for (const { body, broken } of rules) {
    it(`with ${JSON.stringify(body).slice(0, 80)} is rejected, new or changed`, async () => {
      assert.deepEqual((await world.call("POST", `/repos/${world.root}`, fresh(body))).outcome, invalid(broken));
      assert.deepEqual((await patch(await world.repo(fresh()), body)).outcome, invalid(broken));
    });
  }

  for (const preflight of [
    { tcp: "[::1]:65535", timeout: "1h" },
    { tcp: "10.0.0.1:1", timeout: "0.5s", interval: "1ns" },
    { tcp: "db.acme_1.example:80", timeout: ".5m", interval: "10µs" },
    { path: "/", timeout: "59m60s" },
  ]) {
    it(`may check ${JSON.stringify(preflight)} before its program`, async () => {
      const { status, text } = await world.call(
        "POST",
        `/repos/${world.root}`,
        fresh({ customOverlay: { preflight: [preflight] } }),
      );
      assert.equal(status, 200, text);
    });
  }

  it("of an unknown tier is rejected", async () => {
    const { status } = await world.call("POST", `/repos/${world.root}`, fresh({ catalogTier: "CATALOG_TIER_GOLD" }));
    assert.equal(status, 400);
  });

  it("needs a group", async () => {
    for (const parent of [`${world.root}/${"0".repeat(16)}`, await world.repo(fresh())]) {
      const { status, json } = await world.call("POST", `/repos/${parent}`, fresh());
      assert.deepEqual([status, json?.message], [404, `Not found: group: there is no group ${parent}`]);
    }
  });
});

describe("a change of a repo", () => {
  const updates: readonly { name: string; mask?: string; body: object; changed: object }[] = [
    { name: "no key", body: {}, changed: {} },
    { name: "the keys present", body: { description: "" }, changed: { description: "" } },
    { name: "output only keys", body: { createTime: "2020-01-01T00:00:00Z" }, changed: {} },
    { name: "an array as a whole", body: { activeTags: ["b", "a"] }, changed: { activeTags: ["b", "a"] } },
    {
      name: "what the mask names",
      mask: "bundles",
      body: { aliases: [], bundles: ["ai"] },
      changed: { bundles: ["ai"] },
    },
    {
      name: "what the mask names and the body lacks",
      mask: "aliases,catalogTier",
      body: {},
      changed: { aliases: [], catalogTier: undefined },
    },
    {
      name: "a part of the overlay",
      mask: "customOverlay.environment",
      body: { customOverlay: { environment: { A: "b" } } },
      changed: { customOverlay: { ...full.customOverlay, environment: { A: "b" } } },
    },
  ];
  for (const { name, mask, body, changed } of updates) {
    it(`by ${name}`, async () => {
      const uid = await world.repo(fresh(full));
      const was = await get(uid);
      world.harness.skewMs += 1_000;
      const { json, status, text } = await patch(uid, body, mask);
      assert.equal(status, 200, text);
      const { updateTime, ...rest } = json ?? {};
      const { updateTime: timeBefore, ...before } = was ?? {};
      for (const [field, value] of Object.entries({ ...before, ...changed }))
        assert.deepEqual(rest[field], value, text);
      assert.equal(updateTime === timeBefore, Object.keys(changed).length === 0);
      assert.deepEqual(await get(uid), json);
    });
  }

  it("by everything clears what is not named", async () => {
    const uid = await world.repo(fresh(full));
    const name = `all-${made++}`;
    const { json } = await patch(uid, { name }, "*");
    const { createTime, updateTime, ...rest } = json ?? {};
    assert.deepEqual(rest, {
      uid,
      name,
      description: "",
      bundles: [],
      aliases: [],
      activeTags: [],
    });
  });

  it("cannot take the name from images that were pushed", async () => {
    const uid = await world.repo(fresh());
    const tag = await world.tag(uid, "latest");
    const kept = precondition("RESOURCE_NOT_EMPTY", "cannot rename repo with child tags");
    assert.deepEqual((await patch(uid, { name: "renamed" })).outcome, kept);
    assert.equal((await world.call("DELETE", `/tags/${tag}`)).status, 200);
    assert.equal((await patch(uid, { name: "renamed" })).json?.name, "renamed");
  });
});

describe("a list of repos", () => {
  it("begins at the 11th with page_size 5 and skip 10, newest first", async () => {
    const group = await world.group();
    const uids: string[] = [];
    for (let i = 0; i < 13; i++) {
      world.harness.skewMs += 10;
      uids.push(await world.repo({ name: `n${(i * 5) % 13}` }, group));
    }
    const below = `uidp.descendants_of=${group}`;
    const { json } = await world.call("GET", `/repos?${below}&page_size=5&skip=10&order_by=created_at%20desc`);
    assert.deepEqual(
      reposIn(json).map(({ uid }) => uid),
      uids.slice(0, 3).reverse(),
    );
    assert.deepEqual([json?.skipped, json?.totalCount, json?.nextPageToken ?? ""], [10, "13", ""]);
    const named = (await world.call("GET", `/repos?${below}&name=n5`)).json;
    assert.deepEqual([named?.totalCount, reposIn(named)[0]?.uid], ["1", uids[1]]);
    const seen: string[] = [];
    let token = "";
    do {
      const page = (await world.call("GET", `/repos?${below}&page_size=4&order_by=name&page_token=${token}`)).json;
      seen.push(...reposIn(page).map(({ name }) => name));
      token = encodeURIComponent(String(page?.nextPageToken ?? ""));
    } while (token !== "");
    assert.deepEqual(seen, Array.from({ length: 13 }, (_, i) => `n${i}`).sort());
  });
});

describe("deleting", () => {});
