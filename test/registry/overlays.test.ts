// Overlays and their bindings: which overlays a binding may name, what lists show, and what concerns other resources.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import type { RestResponse } from "../contract/rest.js";
import type { Somebody } from "../iam/iam-world.js";
import { setLimits } from "../support/quotas.js";
import { type RegistryWorld, startRegistryWorld } from "./registry-world.js";

const config = { contents: { packages: ["curl"] } };
const all = { kind: "KIND_ALL" };
const exact = (...tags: string[]) => ({ kind: "KIND_EXACT", tags });
const CANNOT_NAME =
  "overlay must be the uid of an overlay of the organisation, or the name of one in the group of the repo or above it, which the caller may list";

let world: RegistryWorld;
let made = 0;
before(async () => {
  world = await startRegistryWorld();
});
after(() => world.stop());

async function ok(answer: Promise<RestResponse>): Promise<Readonly<Record<string, unknown>>> {
  const { status, json, text } = await answer;
  assert.equal(status, 200, text);
  return json ?? {};
}

const newRepo = (group: string) => world.repo({ name: `app-${made++}` }, group);
const overlay = async (name: string, group = world.root, by?: Somebody) =>
  String((await ok(world.call("POST", `/overlays/${group}`, { name, config }, by))).uid);
const bind = (repo: string, named: string, selector: object = all, by?: Somebody) =>
  world.call("POST", `/overlayBindings/${repo}`, { overlay: named, tag_selector: selector }, by);
const bindOk = async (repo: string, named: string, selector?: object) =>
  String((await ok(bind(repo, named, selector))).uid);
const rowsOf = (json: Readonly<Record<string, unknown>>) =>
  json.overlayBindings as readonly { readonly uid: string; readonly overlay: { readonly name: string } }[];
const messageOf = ({ status, json }: RestResponse) => [status, String(json?.message)];

describe("a new binding", () => {
  it("finds the nearest overlay of a name", async () => {
    const name = `near ${made++}`;
    const repo = await newRepo(world.grandchild);
    const found = async (selector: object) => {
      const { overlay: shown } = await ok(bind(repo, name, selector));
      return (shown as { uid: string }).uid;
    };
    const top = await overlay(name, world.root);
    await overlay(name, await world.group());
    await overlay(name, world.foreign, world.foreignOwner);
    assert.equal(await found(exact("1")), top);
    const middle = await overlay(name, world.child);
    assert.equal(await found(exact("2")), middle);
    const own = await overlay(name, world.grandchild);
    assert.equal(await found(exact("3")), own);
  });

  it("names an overlay of any group of the organisation by its uid", async () => {
    const sibling = await overlay("elsewhere", await world.group());
    await bindOk(await newRepo(world.child), sibling);
  });

  it("names no overlay of another organisation, and none that its caller may not list", async () => {
    const edit = ["registry.overlays.edit", "registry.overlays.list", "repo.list"];
    const team = await world.group(world.child);
    const [repo, member] = [await newRepo(team), await world.caller(edit, team)];
    const theirs = await overlay("theirs", world.foreign, world.foreignOwner);
    const above = await overlay(`above ${made++}`, world.child);
    const beside = await overlay("beside", await world.group());
    const hidden = [theirs, "theirs", above, `above ${made - 1}`, beside, "beside"];
    const absent = [`${world.root}/${"0".repeat(16)}`, randomIds.newUid(), "no such overlay", "A", "a\nb", repo, team];
    for (const named of [...hidden, ...absent]) {
      assert.deepEqual(
        messageOf(await bind(repo, named, all, member)),
        [400, `Invalid argument: overlay: ${CANNOT_NAME}`],
        named,
      );
    }
    assert.deepEqual(messageOf(await bind(repo, "", all, member)), [
      400,
      "Invalid argument: overlay: overlay is required",
    ]);
    // The owner of the organisation may list these.
    await bindOk(repo, above, exact("1"));
    await bindOk(repo, beside, exact("2"));
  });

  it("may be made by those who edit overlays, and read by those who list them", async () => {
    const [repo, tools] = [await newRepo(world.child), await overlay(`tools ${made++}`, world.child)];
    const reader = await world.caller(["registry.overlays.list"], world.child);
    assert.equal((await bind(repo, tools, all, reader)).status, 403);
    const binding = await bindOk(repo, tools);
    for (const path of [`/overlays/${tools}`, `/overlayBindings/${binding}`]) {
      assert.equal((await world.call("GET", path, undefined, reader)).status, 200);
      assert.equal((await world.call("DELETE", path, undefined, reader)).status, 403);
      for (const stranger of [world.foreignOwner, await world.caller(["repo.list"], world.child)])
        assert.equal((await world.call("GET", path, undefined, stranger)).status, 403);
    }
  });

  it("needs a repo", async () => {
    const tools = await overlay(`tools ${made++}`);
    const { status, json } = await bind(world.child, tools);
    assert.deepEqual([status, json?.message], [404, `Not found: repo: there is no repo ${world.child}`]);
  });

  it("is the only one of several at once that select the same", async () => {
    const [repo, tools] = [await newRepo(world.root), await overlay(`tools ${made++}`)];
    const selectors = [all, exact("v1", "v2"), { kind: "KIND_VARIANT", variant_type: "VARIANT_TYPE_DEV" }];
    const answers = await Promise.all(
      selectors.flatMap((selector) => Array.from({ length: 4 }, () => bind(repo, tools, selector))),
    );
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [...Array(3).fill(200), ...Array(9).fill(409)]);
    assert.equal(rowsOf(await ok(world.call("GET", `/overlayBindings?uidp.children_of=${repo}`))).length, 3);
  });
});

describe("a list of bindings", () => {
  it("has the overlay of each, in pages and in every order", async () => {
    const group = await world.group();
    const [one, other] = [await overlay("one", group), await overlay("other", group)];
    const repo = await newRepo(group);
    const made: string[] = [];
    for (let n = 0; n < 7; n++) {
      world.harness.skewMs += 10;
      made.push(await bindOk(repo, n % 2 === 0 ? one : other, exact(`v${n}`)));
    }
    const list = (query: string) => ok(world.call("GET", `/overlayBindings?uidp.descendants_of=${group}&${query}`));
    const whole = await list("order_by=created_at%20desc");
    assert.deepEqual(
      rowsOf(whole).map(({ uid, overlay: shown }) => [uid, shown.name]),
      made.map((uid, n) => [uid, n % 2 === 0 ? "one" : "other"]).reverse(),
    );
    const filtered = await list(`overlay=${other}&page_size=2`);
    assert.deepEqual([rowsOf(filtered).length, filtered.totalCount], [2, "3"]);
    const rest = await list(
      `overlay=${other}&page_size=2&page_token=${encodeURIComponent(String(filtered.nextPageToken))}`,
    );
    assert.deepEqual([rowsOf(rest).length, rest.nextPageToken], [1, undefined]);
    const { status } = await world.call("GET", "/overlayBindings?overlay=one");
    assert.equal(status, 400);
  });

  it("and of overlays show what their caller may see", async () => {
    const group = await world.group();
    const repo = await newRepo(group);
    await bindOk(repo, await overlay("tools", group));
    const reader = await world.caller(["registry.overlays.list"], group);
    const count = async (path: string, by: Somebody) => (await ok(world.call("GET", path, undefined, by))).totalCount;
    for (const path of ["/overlays", "/overlayBindings"]) {
      assert.equal(await count(path, reader), "1");
      assert.equal(await count(`${path}?uidp.descendants_of=${group}`, world.owner), "1");
      assert.equal(await count(`${path}?uidp.descendants_of=${group}`, world.foreignOwner), "0");
    }
    assert.equal(await count("/overlays?name=tools", reader), "1");
    assert.equal(await count("/overlays?name=other", reader), "0");
  });
});

describe("a repo", () => {
  it("with an empty custom overlay may have bindings, and one with bindings an empty custom overlay", async () => {
    const tools = await overlay(`tools ${made++}`);
    const repo = await world.repo({ name: `app-${made++}`, customOverlay: { contents: {} } });
    await bindOk(repo, tools);
    await ok(world.call("PATCH", `/repos/${repo}`, { customOverlay: { accounts: {} } }));
    const { status } = await world.call("PATCH", `/repos/${repo}`, { customOverlay: { environment: { A: "b" } } });
    assert.equal(status, 400);
  });

  it("gets either a custom overlay or a binding, when both come at once", async () => {
    const tools = await overlay(`tools ${made++}`);
    for (let round = 0; round < 5; round++) {
      const repo = await newRepo(world.root);
      const answers = await Promise.all([
        bind(repo, tools),
        world.call("PATCH", `/repos/${repo}`, { customOverlay: config }),
      ]);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
    }
  });

  it("is deleted with all its bindings, which are then counted no more", async () => {
    const group = await world.group();
    const repo = await newRepo(group);
    const tools = await overlay("tools", group);
    for (let n = 0; n < 20; n++) await bindOk(repo, tools, exact(`a${n}`, `b${n}`));
    assert.equal((await world.call("DELETE", `/overlays/${tools}`)).status, 400);
    await ok(world.call("DELETE", `/repos/${repo}`));
    const list = await ok(world.call("GET", `/overlayBindings?uidp.descendants_of=${group}`));
    assert.equal(list.totalCount, "0");
    await ok(world.call("DELETE", `/overlays/${tools}`));
  });
});

it("quotas limit the overlays and the bindings of an organisation", async () => {
  const { group: root, token } = await world.harness.organisation("limited");
  await setLimits(world.harness.app.installation.store, root, { overlays: 1, overlayBindings: 1 });
  const send = async (path: string, body: object) => {
    const response = await fetch(`${world.url}/registry/v2beta1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, json: (await response.json()) as { uid: string; message: string } };
  };
  const tools = (await send(`/overlays/${root}`, { name: "one", config })).json.uid;
  const second = await send(`/overlays/${root}`, { name: "two", config });
  assert.deepEqual([second.status, /^Resource exhausted: overlays: /.test(second.json.message)], [429, true]);
  const repo = (await send(`/repos/${root}`, { name: "app" })).json.uid;
  const binding = { overlay: tools, tag_selector: exact("v1") };
  assert.equal((await send(`/overlayBindings/${repo}`, binding)).status, 200);
  const another = await send(`/overlayBindings/${repo}`, { ...binding, tag_selector: exact("v2") });
  assert.deepEqual([another.status, /^Resource exhausted: overlayBindings: /.test(another.json.message)], [429, true]);
});
