// `arbor auth bindings`: what a person holds, and what waits to be accepted.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { builtinRoleUid } from "../../../../src/kernel/ids.js";
import { restAs } from "../../../contract/rest.js";
import { startHost } from "../../../e2e/process.js";
import { type Harness, startHarness } from "../../../support/harness.js";

let service: Harness;
let host: ReturnType<typeof startHost>;
before(async () => {
  service = await startHarness();
  host = startHost();
});
after(async () => {
  host.close();
  await service.stop();
});

it("lists what waits, accepts it, and gives it up", async () => {
  const { group, token } = await service.organisation("acme.example");
  const person = await service.identity();
  const arbor = (...args: string[]) =>
    host.run(["auth", "bindings", ...args], { ARBOR_API: service.url, ARBOR_TOKEN: person.token });
  const body = { identityUid: person.uid, roleUid: builtinRoleUid("viewer") };
  const { json } = await restAs(service.url, token)("POST", `/roleBindings/${group}`, body);
  const uid = String(json?.uid);

  const listed = await arbor("list");
  assert.equal(listed.code, 0, listed.stderr);
  const [head = "", row = "", ...more] = listed.stdout.trimEnd().split("\n");
  assert.match(head, /^GROUP +ORGANIZATION +ROLE +PENDING +CREATED +UID$/);
  assert.match(row, new RegExp(`^acme\\.example +acme\\.example +viewer +yes +\\S+ +${uid}$`));
  assert.deepEqual(more, []);

  const accepted = await arbor("accept", uid, "-o", "json");
  assert.equal(accepted.code, 0, accepted.stderr);
  assert.equal(JSON.parse(accepted.stdout).pending, false);
  assert.deepEqual(JSON.parse((await arbor("list", "--pending", "-o", "json")).stdout).bindings, []);
  const shown = await arbor("list", "--filter", "pending=false", "--columns", "role.name,pending");
  assert.match(shown.stdout, /^ROLE\.NAME +PENDING\n\S+ +no\n/);
  assert.equal((await arbor("list", "--no-pending", "--columns", "role.name,PENDING")).stdout, shown.stdout);
  const all = JSON.parse((await arbor("list", "-o", "json")).stdout) as { bindings: { uid: string }[] };
  assert.deepEqual(
    all.bindings.map((one) => one.uid),
    [uid],
  );

  const unasked = await arbor("drop", uid);
  assert.notEqual(unasked.code, 0, "nobody was there to ask");
  const dropped = await arbor("drop", uid, "--yes");
  assert.deepEqual([dropped.code, dropped.stdout], [0, `dropped ${uid}\n`]);
  const again = await arbor("drop", uid, "--yes");
  assert.equal(again.code, 4, again.stderr);
});
