// After "bind, change, unbind" the log alone says who had which role where and when: over the API and by commands.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { bindIdentity, unbindIdentity } from "../../src/iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { restAs } from "../contract/rest.js";
import { startHost } from "../e2e/process.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";

interface Shown {
  readonly uid: string;
  readonly identity: { readonly uid: string };
  readonly group: { readonly uid: string };
  readonly role: { readonly name: string };
}

interface ShownEvent {
  readonly time: string;
  readonly body?: { readonly type: string; readonly before?: Shown; readonly after?: Shown };
}

/** Who had which role where, from when until when: from events alone, the oldest first. */
function readHistory(events: readonly ShownEvent[]): string[] {
  const open = new Map<string, string>();
  const history: string[] = [];
  for (const { time, body } of events) {
    if (!body?.type.endsWith(".RoleBinding")) continue;
    const { before, after } = body;
    const begun = before && open.get(before.uid);
    if (before && begun)
      history.push(`${before.identity.uid} ${before.role.name} ${before.group.uid} ${begun} ${time}`);
    if (after) open.set(after.uid, time);
  }
  return history;
}

describe("the history of a role binding", () => {
  const host = startHost();
  let world: IamWorld;
  let [identity, binding] = ["", ""];
  const times: string[] = [];
  before(async () => {
    world = await startIamWorld();
    identity = await world.identity();
    const rest = restAs(world.url, world.owner.token, "/iam/v2");
    const grant = { identityUid: identity, roleUid: builtinRoleUid("editor") };
    const made = await rest("POST", `/roleBindings/${world.child}`, grant);
    binding = String(made.json?.uid);
    const roleUid = builtinRoleUid("viewer");
    const changed = await rest("PATCH", `/roleBindings/${binding}`, { roleUid });
    const deleted = await rest("DELETE", `/roleBindings/${binding}`);
    for (const { status, text } of [made, changed, deleted]) assert.equal(status, 200, text);
    const rows = await world.write((tx) => tx.audit.listNewest(3, world.root));
    times.push(...rows.map(({ timeMs }) => new Date(timeMs).toISOString()).reverse());
  });
  after(async () => {
    host.close();
    await world.stop();
  });

  const expected = () => [
    `${identity} editor ${world.child} ${times[0]} ${times[1]}`,
    `${identity} viewer ${world.child} ${times[1]} ${times[2]}`,
  ];

  test("is in the events of the API", async () => {
    const query = new URLSearchParams({ scope: world.child, subject: binding, orderBy: "time asc" });
    const { json } = await restAs(world.url, world.owner.token, "/audit/v1")("GET", `/events?${query}`);
    assert.deepEqual(readHistory(json?.events as unknown as ShownEvent[]), expected());
  });

  test("is in what the commands print, and a line says what was changed", async () => {
    const token = { ARBOR_TOKEN: world.owner.token };
    const args = ["audit", "list", "--scope", world.child, "--subject", binding, "--api", world.url];
    const json = await host.run([...args, "--json"], token);
    assert.equal(json.code, 0, json.stderr);
    const events = json.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as ShownEvent);
    assert.deepEqual(readHistory(events.reverse()), expected());
    const { stdout } = await host.run(args, token);
    const [header, deleted, changed, created] = stdout.split("\n");
    assert.match(header ?? "", / CHANGE /);
    assert.match(changed ?? "", / role editor → viewer /);
    assert.match(created ?? "", / role editor /);
    assert.match(deleted ?? "", / role viewer /);
  });

  test("is in the log without bodies for those who may not list role bindings there", async () => {
    const { token } = await world.caller(["groups.list"], world.child);
    const query = new URLSearchParams({ scope: world.child, subject: binding });
    const { status } = await restAs(world.url, token, "/audit/v1")("GET", `/events?${query}`);
    assert.equal(status, 403, "as before: the log itself needs that right");
  });

  test("commands on the host say the same", async () => {
    const context = { ids: randomIds, nowMs: Date.now() };
    const uid = await world.write((tx) =>
      bindIdentity(tx, { identity, role: builtinRoleUid("viewer"), group: world.child }, context),
    );
    await world.write((tx) => unbindIdentity(tx, uid, { ...context, nowMs: Date.now() + 5 }));
    const query = new URLSearchParams({ scope: world.child, subject: uid, orderBy: "time asc" });
    const { json } = await restAs(world.url, world.owner.token, "/audit/v1")("GET", `/events?${query}`);
    const events = json?.events as unknown as ShownEvent[];
    assert.deepEqual(
      events.map(({ body }) => body?.type),
      ["chainguard.platform.iam.v2.RoleBinding", "chainguard.platform.iam.v2.RoleBinding"],
    );
    assert.deepEqual(readHistory(events), [`${identity} viewer ${world.child} ${events[0]?.time} ${events[1]?.time}`]);
  });
});
