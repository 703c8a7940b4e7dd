// Subscriptions in version 1 beside the same ones in version 2: over REST and
// gRPC, by clients generated from the protos.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { timestampDate, timestampMs } from "@bufbuild/protobuf/wkt";
import { Subscriptions } from "#gen/chainguard/platform/events/subscriptions_pb.js";
import { SubscriptionsService } from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { type Connection, connectTo, staticToken } from "../../src/client/index.js";
import { randomIds } from "../../src/kernel/ids.js";
import { subscriptionKind } from "../../src/store/iam/subscriptions.js";
import { DOMAIN, type Expected, expectNotFound, invalid, precondition } from "../contract/expectations.js";
import { type Rest, restAs } from "../contract/rest.js";
import { type IamWorld, type Somebody, startIamWorld } from "../iam/iam-world.js";

const SINK = "https://localhost/callback";
const TYPE = "type.googleapis.com/google.rpc.";

/** The ways to one and the same subscriptions, over both protocols. */
interface Ways {
  readonly v1: Rest;
  readonly v2: Rest;
  readonly connection: Connection;
}

let world: IamWorld;
let ours: Ways;
let theirs: Ways;
let v1: Rest;
let v2: Rest;

before(async () => {
  world = await startIamWorld();
  ours = waysOf(world.owner);
  theirs = waysOf(world.foreignOwner);
  ({ v1, v2 } = ours);
});
after(async () => {
  ours.connection.close();
  theirs.connection.close();
  await world.stop();
});

function waysOf({ token }: Somebody): Ways {
  return {
    v1: restAs(world.url, token, "/events/v1"),
    v2: restAs(world.url, token, "/events/v2beta1"),
    connection: connectTo({ baseUrl: world.url, token: staticToken(token) }),
  };
}

async function subscribe(group: string, sink = SINK): Promise<string> {
  const { status, json, text } = await v2("POST", `/subscriptions/${group}`, { sink });
  assert.equal(status, 200, text);
  return String(json?.uid);
}

async function readList(rest: Rest, query = ""): Promise<string[]> {
  const { status, json, text } = await rest("GET", `/subscriptions${query}`);
  assert.equal(status, 200, text);
  const { items, subscriptions } = json as Record<string, { id?: string; uid?: string }[] | undefined>;
  return (items ?? subscriptions ?? []).map(({ id, uid }) => id ?? uid ?? "");
}

function noSubscription(uid: string): Expected {
  return {
    code: "NOT_FOUND",
    message: `Not found: subscription: there is no subscription ${uid}`,
    details: [
      { "@type": `${TYPE}ErrorInfo`, reason: "NOT_FOUND", domain: DOMAIN },
      { "@type": `${TYPE}ResourceInfo`, resourceType: "events.chainguard.dev/Subscription", resourceName: uid },
    ],
  };
}

describe("a subscription", () => {
  it("created in version 1 is visible and deleted in version 2", async () => {
    const { json } = await v1("POST", `/subscriptions/${world.child}`, { sink: SINK, id: "not mine to say" });
    const { id, createdAt, updatedAt, ...shown } = json as Record<string, string>;
    assert.deepEqual(shown, { sink: SINK });
    assert.match(id ?? "", new RegExp(`^${world.child}/[0-9a-f]{16}$`));
    assert.ok(Math.abs(Date.now() - Date.parse(createdAt ?? "")) < 60_000);
    assert.equal(updatedAt, createdAt);

    const client = ours.connection.client(SubscriptionsService);
    const seen = await client.getSubscription({ uid: id ?? "" });
    assert.deepEqual([seen.uid, seen.sink], [id, SINK]);
    assert.deepEqual((await v2("GET", `/subscriptions/${id}`)).json, { uid: id, sink: SINK });
    await client.deleteSubscription({ uid: id ?? "" });
    assert.deepEqual(await readList(v1, `?id=${id}`), []);
  });

  it("created in version 2 is visible and deleted in version 1", async () => {
    const client = ours.connection.client(Subscriptions);
    const made = await ours.connection
      .client(SubscriptionsService)
      .createSubscription({ parent: world.child, subscription: { sink: SINK } });
    const { items } = await client.list({ id: made.uid });
    const [item] = items;
    assert.ok(item?.createdAt && item.updatedAt && items.length === 1);
    assert.deepEqual([item.id, item.sink], [made.uid, SINK]);
    assert.equal(timestampMs(item.createdAt), timestampMs(item.updatedAt));
    const { json } = await v1("GET", `/subscriptions?id=${made.uid}`);
    const [createdAt, updatedAt] = [item.createdAt, item.updatedAt].map((time) => timestampDate(time).toISOString());
    assert.deepEqual(json, { items: [{ id: made.uid, sink: SINK, createdAt, updatedAt }] });
    const gone = await v1("DELETE", `/subscriptions/${made.uid}`);
    assert.deepEqual([gone.status, gone.text], [200, ""]);
    assert.deepEqual((await v2("GET", `/subscriptions/${made.uid}`)).outcome, noSubscription(made.uid));
  });

  it("created over gRPC in version 1 may share its sink with others", async () => {
    const client = ours.connection.client(Subscriptions);
    const request = { parentId: world.child, subscription: { sink: SINK } };
    const [first, second] = [await client.create(request), await client.create(request)];
    assert.notEqual(first.id, second.id);
    for (const { id } of [first, second]) await client.delete({ id });
    await assert.rejects(client.delete({ id: first.id }), /there is no subscription/);
  });

  it("that is missing is not found, also by who deletes it again", async () => {
    const uid = randomIds.newUid(world.child);
    for (const [method, rest] of [["GET", v2] as const, ["DELETE", v2] as const, ["DELETE", v1] as const]) {
      assert.deepEqual((await rest(method, `/subscriptions/${uid}`)).outcome, noSubscription(uid), method);
    }
    const group = randomIds.newUid(world.root);
    for (const rest of [v1, v2])
      assert.deepEqual((await rest("POST", `/subscriptions/${group}`, { sink: SINK })).outcome, expectNotFound(group));
  });

  const https = "sink must be an https URL of at most 2048 characters without user or fragment";
  const broken: readonly (readonly [sink: string, rule: string])[] = [
    ["", "sink is required"],
    ["http://a.example/", https],
    ["https://user:secret@a.example/", https],
  ];
  for (const [sink, rule] of broken) {
    it(`with the sink ${JSON.stringify(sink)} is rejected in both versions`, async () => {
      for (const rest of [v1, v2]) {
        const { status, outcome, text } = await rest("POST", `/subscriptions/${world.child}`, { sink });
        assert.deepEqual([status, outcome], [400, invalid(["sink", rule])]);
        assert.doesNotMatch(text, /secret/);
      }
    });
  }

  it("is rejected with the name of the parent field in each version", async () => {
    const rule = (field: string) => invalid([field, `${field} must be a uid, such as the service assigns`]);
    assert.deepEqual((await v1("POST", "/subscriptions/here", { sink: SINK })).outcome, rule("parentId"));
    assert.deepEqual((await v2("POST", "/subscriptions/here", { sink: SINK })).outcome, rule("parent"));
    assert.deepEqual((await v1("DELETE", "/subscriptions/it")).outcome, rule("id"));
    assert.deepEqual((await v2("DELETE", "/subscriptions/it")).outcome, rule("uid"));
    assert.equal((await v1("GET", "/subscriptions?id=it")).status, 400);
  });

  it("keeps its group from being deleted, in every version, until the last is gone", async () => {
    const group = await world.group();
    const uids = [await subscribe(group), await subscribe(group)];
    for (const [i, uid] of uids.entries()) {
      const kept = precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child subscriptions", {
        subscriptions: String(uids.length - i),
      });
      for (const version of ["v1", "v2beta1", "v2"]) {
        const rest = restAs(world.url, world.owner.token, `/iam/${version}`);
        assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept, version);
      }
      assert.equal((await v2("DELETE", `/subscriptions/${uid}`)).status, 200);
    }
    assert.equal((await world.owner.rest("DELETE", `/groups/${group}`)).status, 200);
  });
});

describe("lists of subscriptions", () => {
  let top: string;
  let below: string;
  let uids: readonly string[];
  let byTime: readonly string[];

  before(async () => {
    top = await world.group();
    below = await world.group(top);
    const parents = [below, top, below, top, top];
    const made = parents.map((group, i) => ({ uid: randomIds.newUid(group), groupUid: group, at: 1_000 + (i % 3) }));
    await world.write(async (tx) => {
      for (const { uid, groupUid, at } of made) {
        await tx.table(subscriptionKind).insert({ uid, groupUid, sink: SINK, createTimeMs: at, updateTimeMs: at });
      }
    });
    byTime = made.toSorted((a, b) => a.at - b.at || (a.uid < b.uid ? -1 : 1)).map(({ uid }) => uid);
    uids = byTime.toSorted();
  });

  it("come in pages in version 2, in every order that there is", async () => {
    const orders: Readonly<Record<string, () => readonly string[]>> = {
      "": () => uids,
      uid: () => uids,
      "uid desc": () => [...uids].reverse(),
      created_at: () => byTime,
      "createTime desc": () => [...byTime].reverse(),
    };
    for (const [order, expected] of Object.entries(orders)) {
      const query = `?uidp.descendants_of=${top}&page_size=2&order_by=${encodeURIComponent(order)}`;
      const seen: string[] = [];
      let token = "";
      do {
        const { json, text } = await v2("GET", `/subscriptions${query}&page_token=${token}`);
        assert.ok(json?.subscriptions, text);
        const { subscriptions, nextPageToken, totalCount } = json as {
          subscriptions: { uid: string }[];
          nextPageToken?: string;
          totalCount: string;
        };
        assert.ok(subscriptions.length <= 2);
        assert.equal(totalCount, "5");
        seen.push(...subscriptions.map(({ uid }) => uid));
        token = nextPageToken ?? "";
      } while (token !== "");
      assert.deepEqual(seen, expected(), order);
    }
    assert.deepEqual(await readList(v2, `?uidp.descendants_of=${top}&skip=4`), uids.slice(4));
    assert.equal((await v2("GET", "/subscriptions?order_by=sink")).status, 400);
    assert.equal((await v2("GET", "/subscriptions?page_size=-1")).status, 400);
  });

  it("are listed without pages in version 1, in the order of uids, also where version 2 needs many pages", async () => {
    const many = await world.group();
    const rows = Array.from({ length: 1_201 }, () => randomIds.newUid(many));
    await world.write(async (tx) => {
      for (const uid of rows) {
        await tx.table(subscriptionKind).insert({ uid, groupUid: many, sink: SINK, createTimeMs: 1, updateTimeMs: 1 });
      }
    });
    const uidp = { childrenOf: many };
    const { items } = await ours.connection.client(Subscriptions).list({ uidp });
    assert.deepEqual(
      items.map(({ id }) => id),
      [...rows].sort(),
    );
    assert.deepEqual(await readList(v1, `?uidp.children_of=${many}`), [...rows].sort());
  });

  it("are filtered by parent and uid in the same way in both versions", async () => {
    const within = (group: string) => uids.filter((uid) => uid.startsWith(`${group}/`));
    const directly = (group: string) => within(group).filter((uid) => uid.length === group.length + 17);
    const [one = "", two = ""] = uids;
    const filters: Readonly<Record<string, readonly string[]>> = {
      [`uidp.descendants_of=${top}`]: uids,
      [`uidp.descendants_of=${below}`]: within(below),
      [`uidp.children_of=${top}`]: directly(top),
      [`uidp.children_of=${below}`]: directly(below),
      [`uidp.ids=${two}&uidp.ids=${one}`]: [one, two],
      [`uidp.ids=${one}&uidp.children_of=${world.grandchild}`]: [],
    };
    for (const [filter, expected] of Object.entries(filters)) {
      for (const rest of [v1, v2]) assert.deepEqual(await readList(rest, `?${filter}`), expected, filter);
    }
    assert.deepEqual(await readList(v1, `?id=${one}&uidp.ids=${two}`), []);
    assert.deepEqual(await readList(v1, `?id=${randomIds.newUid(top)}`), []);
  });
});
