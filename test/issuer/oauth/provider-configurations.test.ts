import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createProviderConfigurations } from "../../../src/issuer/oauth/provider-configurations.js";

test("what a provider said last is used while it fails, and a stranger that fails is left alone", async () => {
  const times = { freshMs: 300, pauseMs: 300, staleMs: 60_000 };
  let isDown = false;
  let asked = 0;
  const configurationOf = createProviderConfigurations(async (name: string) => {
    asked++;
    if (isDown) throw new Error("down");
    return { name, asked };
  }, times);
  assert.equal((await configurationOf("a", "p", "p")).asked, 1);
  isDown = true;
  await sleep(400);
  assert.equal((await configurationOf("a", "p", "p")).asked, 1, "the last answer");
  await assert.rejects(configurationOf("b", "p", "p"), /down/, "another organisation has none");
  await assert.rejects(configurationOf("b", "p", "p"), /down/);
  assert.equal(asked, 3, "and waits before it asks again");
  isDown = false;
  await sleep(400);
  assert.equal((await configurationOf("b", "p", "p")).asked, 4);
  assert.equal((await configurationOf("a", "p", "p")).asked, 5);
});

test("many providers of one organisation push out none of another or of the operator", async () => {
  let asked = 0;
  const configurationOf = createProviderConfigurations(async () => ({ asked: ++asked }));
  await configurationOf(undefined, "own", "own");
  await configurationOf("b", "own", "own");
  for (let i = 0; i < 300; i++) await configurationOf("a", `p${i}`, "p");
  assert.equal((await configurationOf(undefined, "own", "own")).asked, 1);
  assert.equal((await configurationOf("b", "own", "own")).asked, 2);
  // The control: those of the organisation itself made room for each other.
  assert.equal((await configurationOf("a", "p0", "p")).asked, 303);
});
