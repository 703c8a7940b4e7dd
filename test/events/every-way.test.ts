// Events of changes by REST, gRPC, version 1, a command on the host and a push to the registry: each arrives at a receiver
// that reads it with the SDK of CloudEvents, and is verified with jose by what discovery says, by the client and by the
// receivers of examples/receivers. What is not as it was sent is refused.
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { connectTo, EventRejected, eventVerifier, staticToken } from "../../src/client/index.js";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { type Rest, restAs } from "../contract/rest.js";
import { runCommand } from "../support/command.js";
import { newDataDir } from "../support/data-dir.js";
import { type Harness, startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { examples, startExample } from "./examples.js";
import { createVerifier, RECEIVER_SETTINGS, type Received, type Receiver, startReceiver } from "./receiver.js";

const SECRET = "s".repeat(40);
const DIGEST = `sha256:${"a".repeat(64)}`;

let harness: Harness;
let other: Harness;
let data: string;
let receiver: Receiver;
let group: string;
let owner: string;
let token: string;
let rest: Rest;
let subscription: string;
/** The event of each way, by its name. */
const arrived = new Map<string, Received>();

before(async () => {
  data = newDataDir();
  const registrySecretFile = join(tempDir(), "secret");
  writeFileSync(registrySecretFile, SECRET);
  chmodSync(registrySecretFile, 0o600);
  harness = await startHarness({ ...RECEIVER_SETTINGS, data, registrySecretFile });
  other = await startHarness();
  receiver = await startReceiver();
  ({ group, identity: owner, token } = await harness.organisation("acme.example"));
  rest = restAs(harness.url, token, "");
  const { status, json, text } = await rest("POST", `/events/v2/subscriptions/${group}`, { sink: receiver.url });
  assert.equal(status, 200, text);
  subscription = String(json?.uid);
  for (const [name, change] of Object.entries(ways)) arrived.set(name, await arrivalOf(await change()));
});
after(async () => {
  receiver.close();
  await other.stop();
  await harness.stop();
});

/** What the event of a change must have. */
interface Expected {
  readonly type: string;
  readonly subject: string | undefined;
  readonly actor: string | undefined;
}

const ways: Readonly<Record<string, () => Promise<Expected>>> = {
  async REST() {
    const { json } = await rest("POST", `/iam/v2/groups/${group}`, { name: "by rest" });
    return { type: "dev.chainguard.api.iam.group.created.v1", subject: String(json?.uid), actor: owner };
  },
  async gRPC() {
    const connection = connectTo({ baseUrl: harness.url, token: staticToken(token) });
    const { uid } = await connection.client(GroupsService).createGroup({ parent: group, group: { name: "by grpc" } });
    connection.close();
    return { type: "dev.chainguard.api.iam.group.created.v1", subject: uid, actor: owner };
  },
  async "version 1"() {
    const body = { name: "by v1", capabilities: ["groups.list"] };
    const { json, text } = await rest("POST", `/iam/v1/roles/${group}`, body);
    assert.ok(json?.id, text);
    return { type: "dev.chainguard.api.iam.roles.created.v1", subject: String(json?.id), actor: owner };
  },
  async "a command on the host"() {
    const { uid } = await harness.identity();
    const args = ["--identity", uid, "--role", builtinRoleUid("viewer"), "--group", group, "--json", "--data", data];
    const { code, stdout, stderr } = await runCommand(["admin", "bind", ...args]);
    assert.equal(code, 0, stderr);
    const made = JSON.parse(stdout);
    return {
      type: "dev.chainguard.api.iam.rolebindings.created.v1",
      subject: made.uid ?? made.roleBinding,
      actor: undefined,
    };
  },
  async "a push to the registry"() {
    const target = {
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      repository: `${group}/app`,
      tag: "latest",
      digest: DIGEST,
    };
    const event = { id: "push-1", timestamp: new Date().toISOString(), action: "push", target };
    const response = await fetch(`${harness.url}/registry/notifications`, {
      method: "POST",
      headers: { authorization: `Bearer ${SECRET}`, "content-type": "application/json" },
      body: JSON.stringify({ events: [{ ...event, request: { useragent: "docker/27" } }] }),
    });
    assert.equal(response.status, 200, await response.text());
    return { type: "dev.chainguard.registry.push.v1", subject: undefined, actor: undefined };
  },
};

async function arrivalOf({ type, subject, actor }: Expected): Promise<Received> {
  const found = await waitUntil(() =>
    receiver.received.find(({ event }) => event.type === type && (subject === undefined || event.subject === subject)),
  );
  if (actor !== undefined) assert.equal(found.event.actor, actor);
  return found;
}

describe("an event", () => {
  for (const name of Object.keys(ways)) {
    it(`of ${name} is verified by jose with discovery, and by the client`, async () => {
      const received = arrived.get(name) ?? assert.fail("nothing arrived");
      const verify = await createVerifier(harness.url);
      await verify(group, received);
      const verifyEvent = eventVerifier({ issuer: harness.url, group, subscription, requireAttributes: true });
      const verified = await verifyEvent(received.headers, received.data);
      const { event } = received;
      assert.deepEqual(
        [verified.id, verified.type, verified.subject, verified.source, verified.repeated],
        [event.id, event.type, event.subject ?? "", event.source, false],
      );
      assert.deepEqual(verified.data, event.data);
      assert.ok(Object.keys(event.data?.body ?? {}).length > 0, "the body is empty");
    });
  }

  it("is refused by the client if it is not as it was sent", async () => {
    const { headers, data: body } = arrived.get("REST") ?? assert.fail("nothing arrived");
    const rule = { issuer: harness.url, group };
    const refuses = async (options: Parameters<typeof eventVerifier>[0], changed: Buffer, message: RegExp) =>
      assert.rejects(eventVerifier(options)(headers, changed), (error) => {
        assert.ok(error instanceof EventRejected && error.status === 403, String(error));
        assert.match(error.message, message);
        return true;
      });
    await refuses(rule, Buffer.from(body.toString().replace("by rest", "by REST")), /not what was signed/);
    await refuses({ ...rule, issuer: other.url }, body, /issuer|not one/);
    await refuses({ ...rule, group: `${group}/0123456789abcdef` }, body, /another sub/);
    const late = () => Date.now() + 601_000;
    await refuses({ ...rule, clock: late }, body, /expired/);
    await eventVerifier(rule)(headers, body);
  });

  for (const name of Object.keys(ways)) {
    it(`of ${name} is refused under any other attribute`, async () => {
      const { headers, data: body } = arrived.get(name) ?? assert.fail("nothing arrived");
      const attributes = Object.keys(headers).filter(
        (header) => header.startsWith("ce-") && header !== "ce-specversion",
      );
      assert.ok(attributes.length >= 6, attributes.join());
      for (const header of [...attributes, "ce-more"]) {
        const forged = { ...headers, [header]: `${headers[header] ?? ""}0` };
        await assert.rejects(eventVerifier({ issuer: harness.url, group })(forged, body), {
          name: "EventRejected",
          status: 403,
          message: "the attributes are not what was signed",
        });
      }
    });
  }

  it("for another subscription of the group is refused where the receiver knows its own", async () => {
    const second = await startReceiver();
    try {
      const { json } = await rest("POST", `/events/v2/subscriptions/${group}`, { sink: second.url });
      await rest("POST", `/iam/v2/groups/${group}`, { name: "for both" });
      const isIt = ({ event }: Received) => event.data?.body.name === "for both";
      const [own, theirs] = await Promise.all(
        [receiver, second].map(({ received }) => waitUntil(() => received.find(isIt))),
      );
      assert.ok(own && theirs);
      assert.equal(own.event.id, theirs.event.id);
      const verify = (uid: string, { headers, data: body }: Received) =>
        eventVerifier({ issuer: harness.url, group, subscription: uid })(headers, body);
      await verify(subscription, own);
      await verify(String(json?.uid), theirs);
      await assert.rejects(verify(subscription, theirs), /another subscription of the group/);
      // Without the uid it is the same event, which is accepted.
      await eventVerifier({ issuer: harness.url, group })(theirs.headers, theirs.data);
    } finally {
      second.close();
    }
  });

  it("of another organisation, sent to the same sink, is refused", async () => {
    const foreign = await harness.organisation("foreign.example");
    const theirs = restAs(harness.url, foreign.token, "");
    assert.equal(
      (await theirs("POST", `/events/v2/subscriptions/${foreign.group}`, { sink: receiver.url })).status,
      200,
    );
    const { json } = await theirs("POST", `/iam/v2/groups/${foreign.group}`, { name: "foreign" });
    const subject = String(json?.uid);
    const received = await arrivalOf({
      type: "dev.chainguard.api.iam.group.created.v1",
      subject,
      actor: foreign.identity,
    });
    const verify = (uid: string) => eventVerifier({ issuer: harness.url, group: uid })(received.headers, received.data);
    await assert.rejects(verify(group), /another sub/);
    assert.equal((await verify(foreign.group)).subject, subject);
  });

  for (const example of examples) {
    const skip = example.missing() ?? false;
    it(`is accepted once by the receiver in ${example.language}`, { skip }, async () => {
      const running = await startExample(example, harness.url, group);
      try {
        const send = async ({ headers, data: body }: Received) => {
          const own = Object.entries(headers).filter(([name]) => /^(ce-|authorization|content-type)/.test(name));
          return (await fetch(running.url, { method: "POST", headers: own as [string, string][], body })).status;
        };
        for (const received of arrived.values()) {
          assert.equal(await send(received), 200);
          const { value } = await running.lines.next();
          assert.equal(JSON.parse(value).id, received.event.id);
          assert.equal(await send(received), 403);
        }
      } finally {
        running.stop();
      }
    });
  }
});
