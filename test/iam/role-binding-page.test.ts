// A page of bindings with all that they join costs three statements, however
// many it holds: who calls and may see what, the total, and the page.
import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";
import { Transaction } from "../../src/store/transaction.js";
import { type Harness, startHarness } from "../support/harness.js";

let service: Harness;
before(async () => {
  service = await startHarness();
});
after(() => service.stop());

test("a page of 50 hydrated bindings takes three statements", async () => {
  const owner = await service.organisation("bindings");
  for (let i = 0; i < 60; i++) {
    const { uid } = await service.identity({ name: `identity ${i}` }, owner.group);
    await service.bind(uid, "viewer", owner.group);
  }
  const headers = { authorization: `Bearer ${owner.token}` };
  const rows = mock.method(Transaction.prototype, "rows");
  const response = await fetch(`${service.url}/iam/v2beta1/roleBindings?page_size=50&order_by=created_at`, { headers });
  const { calls } = rows.mock;
  rows.mock.restore();
  const page = (await response.json()) as { roleBindings: { identity: { name: string } }[]; totalCount: string };
  assert.equal(page.roleBindings.length, 50);
  assert.equal(page.totalCount, "61");
  assert.ok(page.roleBindings.slice(1).every(({ identity }) => identity.name.startsWith("identity ")));
  // Jobs of the service have transactions of their own.
  const transaction = calls.find(
    (one) => "identity" in one.arguments[1] && one.arguments[1].identity === owner.identity,
  );
  assert.ok(transaction);
  assert.equal(calls.filter((one) => one.this === transaction.this).length, 3);
});
