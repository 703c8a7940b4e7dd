// The delivery of events to a real receiver: what it gets, in which order, and what happens when it does not accept it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { bindIdentity, unbindIdentity, verifyGroup } from "../../src/iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { type Answer, createVerifier, RECEIVER_SETTINGS, type Received, startReceiver } from "./receiver.js";

const REGISTRY_SECRET = "s".repeat(40);

let harness: Harness;
let organisations = 0;
before(async () => {
  const registrySecretFile = join(tempDir(), "secret");
  writeFileSync(registrySecretFile, REGISTRY_SECRET, { mode: 0o600 });
  harness = await startHarness({ ...RECEIVER_SETTINGS, registrySecretFile, registryService: "registry.example" });
});
after(() => harness.stop());

const stateOf = (uid: string) => harness.app.installation.store.read((tx) => tx.eventPositions.find(uid));

/** A new organisation with a receiver of its events. */
async function subscribe(answer?: (received: Omit<Received, "status">) => Answer | Promise<Answer>) {
  const receiver = await startReceiver(answer);
  const organisation = await harness.organisation(`org${++organisations}.example`);
  const rest = restAs(harness.url, organisation.token, "");
  const { json } = await rest("POST", `/events/v2beta1/subscriptions/${organisation.group}`, { sink: receiver.url });
  const uid = String(json?.uid);
  const createGroup = async (name: string, parent = organisation.group) =>
    String((await rest("POST", `/iam/v2beta1/groups/${parent}`, { name })).json?.uid);
  return { receiver, rest, uid, group: organisation.group, owner: organisation.identity, createGroup };
}

test("a change arrives as a published event that discovery verifies", async () => {
  const { receiver, rest, group, owner, createGroup } = await subscribe();
  const child = await createGroup("child");
  await rest("PUT", `/iam/v1/groups/${child}`, { name: "renamed" });
  await rest("DELETE", `/iam/v2beta1/groups/${child}`);
  const [, created, updated, deleted] = await receiver.accepted(4);
  receiver.close();
  assert.ok(created && updated && deleted);

  const { event, headers } = created;
  assert.deepEqual(
    { ...JSON.parse(JSON.stringify(event)), id: "", time: "", data: undefined },
    {
      ...{ specversion: "1.0", id: "", type: "dev.chainguard.api.iam.group.created.v1", time: "", data: undefined },
      ...{ source: `${harness.url}/iam/v1/groups`, subject: child, group: child, actor: owner, audience: "customer" },
      ...{ bodytype: "chainguard.platform.iam.v2beta1.Group", datacontenttype: "application/json" },
    },
  );
  assert.match(event.id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.match(event.time ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(headers["content-type"], "application/json");
  assert.deepEqual(event.data?.actor, { subject: owner, act: {} });
  assert.equal(event.data?.body.name, "child");

  assert.equal(updated.event.bodytype, "chainguard.platform.iam.Group");
  assert.deepEqual(
    [updated.event.type, updated.event.data?.body.name],
    ["dev.chainguard.api.iam.group.updated.v1", "renamed"],
  );
  assert.deepEqual(
    [deleted.event.type, deleted.event.bodytype, deleted.event.data?.body, deleted.event.group],
    [
      "dev.chainguard.api.iam.group.deleted.v1",
      "chainguard.platform.iam.v2beta1.DeleteGroupRequest",
      { uid: child },
      group,
    ],
  );

  const verify = await createVerifier(harness.url);
  const claims = await verify(group, created);
  assert.equal((claims.exp ?? 0) - (claims.iat ?? 0), 300);
  await assert.rejects(verify(child, created), { claim: "sub" });
  await assert.rejects(verify(group, { ...created, data: Buffer.from("{}") }), /another body/);
});

test("the token of a delivery is refused by the API and at the exchange", async () => {
  const { receiver, group } = await subscribe();
  const [first] = await receiver.accepted(1);
  receiver.close();
  assert.ok(first);
  const asCaller = restAs(harness.url, first.token, "");
  assert.equal((await asCaller("GET", "/iam/v2beta1/groups")).status, 401);
  const exchange = await asCaller("GET", `/sts/exchange?aud=${harness.url}&identity=${group}`);
  assert.equal(exchange.status, 401, exchange.text);
});

test("events of an organisation go to no other, and those below a group only to subscriptions there and above", async () => {
  const one = await subscribe();
  const other = await subscribe();
  const child = await one.createGroup("child");
  // What is not sealed yet when a subscription begins may arrive as well.
  await one.receiver.accepted(2);
  const below = await startReceiver();
  await one.rest("POST", `/events/v1/subscriptions/${child}`, { sink: below.url });
  await one.createGroup("beside");
  const grandchild = await one.createGroup("grandchild", child);
  await one.receiver.accepted(5);
  const [own, made, ...rest] = await below.accepted(2);
  for (const { close } of [one.receiver, other.receiver, below]) close();
  assert.deepEqual(
    [own?.event.type, made?.event.subject, rest.length],
    ["dev.chainguard.api.events.subscription.created.v1", grandchild, 0],
  );
  assert.deepEqual(
    other.receiver.received.map(({ event }) => event.type),
    ["dev.chainguard.api.events.subscription.created.v1"],
  );
});

test("a failed event is sent again with the same id, later ones of its resource follow it, and others go on", async () => {
  let failures = 2;
  let slow = "none";
  const { receiver, rest, uid, createGroup } = await subscribe(({ event }) => {
    if (event.subject === slow && event.data?.body.name === "y" && failures > 0) {
      failures--;
      return 500;
    }
    return 200;
  });
  await receiver.accepted(1);
  slow = await createGroup("x");
  // Its creation may be sent before its uid is known here.
  await receiver.accepted(2);
  await rest("PATCH", `/iam/v2beta1/groups/${slow}`, { name: "y" });
  await rest("PATCH", `/iam/v2beta1/groups/${slow}`, { name: "z" });
  const other = await createGroup("other");
  const accepted = await receiver.accepted(5);
  receiver.close();
  const ofSlow = receiver.received.filter(({ event }) => event.subject === slow);
  assert.deepEqual(
    ofSlow.map(({ event, status }) => [event.data?.body.name, status]),
    [
      ["x", 200],
      ["y", 500],
      ["y", 500],
      ["y", 200],
      ["z", 200],
    ],
  );
  const [, first, again] = ofSlow;
  assert.equal(first?.event.id, again?.event.id);
  assert.equal(first?.event.time, again?.event.time);
  assert.notEqual(first?.token, again?.token);
  assert.ok(
    accepted.findIndex(({ event }) => event.subject === other) <
      accepted.findIndex(({ event }) => event.data?.body.name === "y"),
  );
  await waitUntil(async () => {
    const { waiting, dead } = await harness.app.installation.store.read((tx) => tx.eventDeliveries.count(uid));
    return waiting + dead === 0 && (await stateOf(uid))?.state === "live";
  });
});

test("a sink is left alone for as long as it says", async () => {
  let refused = 0;
  const { receiver, createGroup } = await subscribe(({ event }) => {
    if (!event.type.includes(".group.") || refused > 0) return 200;
    refused++;
    return (response) => response.writeHead(429, { "retry-after": "2" }).end();
  });
  await receiver.accepted(1);
  await createGroup("x");
  const [, , ...more] = [...(await receiver.accepted(2)), undefined];
  assert.equal(more.length, 1);
  receiver.close();
  const [first, second] = receiver.received.filter(({ event }) => event.type.includes(".group."));
  assert.ok((second?.atMs ?? 0) - (first?.atMs ?? 0) >= 1_900);
});

test("a sink that is gone suspends its subscription", async () => {
  const { receiver, uid, createGroup } = await subscribe(() => 410);
  await waitUntil(async () => (await stateOf(uid))?.state === "suspended");
  assert.equal((await stateOf(uid))?.suspendReason, "gone");
  await createGroup("x");
  await sleep(600);
  receiver.close();
  assert.equal(receiver.received.length, 1);
});

test("a sink that may not be reached fails, and is not waited for in silence", async () => {
  const organisation = await harness.organisation(`org${++organisations}.example`);
  const rest = restAs(harness.url, organisation.token, "");
  const subscribed = await Promise.all(
    ["https://a.example:8443/", "https://a.example./", "https://10.0.0.1/"].map(async (sink) => {
      const { json } = await rest("POST", `/events/v2beta1/subscriptions/${organisation.group}`, { sink });
      return { sink, uid: String(json?.uid) };
    }),
  );
  for (const { sink, uid } of subscribed) {
    await waitUntil(async () => (await stateOf(uid))?.state === "failing");
    const [row] = await harness.app.installation.store.read((tx) => tx.eventDeliveries.listWaiting(uid));
    assert.equal(row?.lastError, "it could not be reached", sink);
  }
});

test("redirects are not followed", async () => {
  const elsewhere = await startReceiver();
  const { receiver, uid } = await subscribe(() => (response) => {
    response.writeHead(307, { location: elsewhere.url }).end();
  });
  await waitUntil(async () => {
    const [row] = await harness.app.installation.store.read((tx) => tx.eventDeliveries.listWaiting(uid));
    return row?.lastStatus === 307;
  });
  receiver.close();
  elsewhere.close();
  assert.equal(elsewhere.connections(), 0);
});

test("connections to a sink are kept", async () => {
  const { receiver, createGroup } = await subscribe();
  await receiver.accepted(1);
  for (let i = 0; i < 5; i++) {
    await createGroup(`g${i}`);
    await receiver.accepted(i + 2);
  }
  receiver.close();
  assert.equal(receiver.connections(), 1);
});

test("a connection that the sink has closed meanwhile costs no attempt", async () => {
  const { receiver, uid, createGroup } = await subscribe(() => (response, request) => {
    response.writeHead(200).end();
    setTimeout(() => request.socket.destroy(), 20);
  });
  for (let i = 0; i < 5; i++) {
    await createGroup(`g${i}`);
    await sleep(150);
  }
  await waitUntil(() => receiver.received.length >= 6);
  receiver.close();
  assert.equal(receiver.received.length, 6);
  assert.equal((await stateOf(uid))?.failingSinceMs, null);
});

test("an event that is sent again because a kept connection was lost has another token", async () => {
  let lost = 0;
  const { receiver, uid, createGroup } = await subscribe(({ event }) => {
    if (event.data?.body.name !== "x" || lost > 0) return 200;
    return (_response, request) => {
      lost++;
      request.socket.destroy();
    };
  });
  await receiver.accepted(1);
  await createGroup("x");
  await receiver.accepted(2);
  receiver.close();
  const [first, again, ...more] = receiver.received.filter(({ event }) => event.data?.body.name === "x");
  assert.ok(first && again);
  assert.equal(first.event.id, again.event.id);
  assert.equal(more.length, 0);
  assert.notEqual(first.token.split(".")[1], again.token.split(".")[1]);
  // It was no failed attempt.
  assert.equal((await stateOf(uid))?.failingSinceMs, null);
});

test("a sink that answers 2xx and whose body does not end gets each event once", async () => {
  const { receiver, uid, createGroup } = await subscribe(() => (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write("x"), 100);
    response.on("close", () => clearInterval(timer));
  });
  for (let i = 0; i < 3; i++) await createGroup(`g${i}`);
  await waitUntil(() => receiver.received.length >= 4);
  await waitUntil(async () => {
    const { waiting } = await harness.app.installation.store.read((tx) => tx.eventDeliveries.count(uid));
    const position = await stateOf(uid);
    return waiting === 0 && position?.state === "live" && position.failingSinceMs === null;
  });
  receiver.close();
  const ids = receiver.received.map(({ event }) => event.id);
  assert.equal(new Set(ids).size, ids.length);
});

test("commands on the host make published events", async () => {
  const { receiver, group } = await subscribe();
  await receiver.accepted(1);
  const who = await harness.identity();
  const { store } = harness.app.installation;
  const context = { ids: randomIds, nowMs: Date.now() };
  const binding = await store.write((tx) =>
    bindIdentity(tx, { identity: who.uid, role: builtinRoleUid("viewer"), group }, context),
  );
  await store.write((tx) => unbindIdentity(tx, binding, context));
  const [, bound, unbound] = await receiver.accepted(3);
  receiver.close();
  const summary = (one: Received | undefined) => [one?.event.type, one?.event.subject, one?.event.bodytype];
  assert.deepEqual(summary(bound), [
    "dev.chainguard.api.iam.rolebindings.created.v1",
    binding,
    "chainguard.platform.iam.v2.RoleBinding",
  ]);
  assert.deepEqual(summary(unbound), [
    "dev.chainguard.api.iam.rolebindings.deleted.v1",
    binding,
    "chainguard.platform.iam.v2.DeleteRoleBindingRequest",
  ]);
  assert.equal(bound?.event.actor, undefined);
  assert.deepEqual(unbound?.event.data?.body, { uid: binding });
});

test("a push to the registry is one event for each manifest, once", async () => {
  const { receiver, group } = await subscribe();
  await receiver.accepted(1);
  const name = `org${organisations}.example`;
  const context = { ids: randomIds, nowMs: Date.now() };
  await harness.app.installation.store.write((tx) => verifyGroup(tx, group, undefined, context));
  const digests = ["a", "b"].map((digit) => `sha256:${digit.repeat(64)}`);
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const push = (id: string, digest: string | undefined, tag?: string) => ({
    ...{ id, action: "push", timestamp: new Date().toISOString(), actor: { name: "" } },
    target: { mediaType, repository: `${name}/app`, digest, tag },
    request: { method: "PUT", addr: "192.0.2.9:1", useragent: "skopeo/1.9.3" },
  });
  const events = [push("1", digests[0], "v1"), push("2", digests[1], "v1"), push("3", digests[0])];
  const blob = {
    ...push("4", digests[0]),
    target: { mediaType: "application/octet-stream", repository: `${name}/app` },
  };
  for (let times = 0; times < 2; times++) {
    const { status } = await fetch(`${harness.url}/registry/notifications`, {
      method: "POST",
      headers: { authorization: `Bearer ${REGISTRY_SECRET}`, "content-type": "application/json" },
      body: JSON.stringify({ events: [...events, blob] }),
    });
    assert.equal(status, 200);
  }
  // Besides: the name, the repo, and the tag twice.
  await receiver.accepted(8);
  await sleep(400);
  receiver.close();
  assert.equal(receiver.received.length, 8);
  const pushes = receiver.received.filter(({ event }) => event.type === "dev.chainguard.registry.push.v1");
  assert.deepEqual(
    pushes.map(({ event }) => [event.data?.body.digest, event.data?.body.tag, event.data?.body.tag_previous_digest]),
    [
      [digests[0], "v1", undefined],
      [digests[1], "v1", digests[0]],
      [digests[0], undefined, undefined],
    ],
  );
  const [{ event } = assert.fail()] = pushes;
  assert.deepEqual([event.source, event.group, event.bodytype], ["registry.example", group, undefined]);
  const { when, repo_id, ...body } = event.data?.body ?? {};
  assert.equal(repo_id, event.subject);
  assert.match(String(when), /^\d{4}-/);
  assert.deepEqual(body, {
    ...{ repository: `${name}/app`, display_name: "app", digest: digests[0], tag: "v1", type: "manifest" },
    ...{ method: "PUT", remote_address: "192.0.2.9:1", user_agent: "skopeo/1.9.3" },
  });
});
