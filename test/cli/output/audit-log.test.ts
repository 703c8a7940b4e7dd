// What `arbor audit` says of a change in a few words.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatChange } from "../../../src/cli/output/audit-log.js";

const type = "chainguard.platform.iam.v2.RoleBinding";
const binding = (role: string) => ({
  ...{ uid: "u", createTime: "2026-01-01T00:00:00Z", updateTime: role },
  ...{ identity: { uid: "i", name: "Ann" }, group: { uid: "g" }, role: { uid: `uid of ${role}`, name: role } },
});

const cases: readonly { name: string; body: unknown; text: string }[] = [
  { name: "nothing", body: undefined, text: "" },
  {
    name: "what an update changed",
    body: { type, before: binding("builder"), after: binding("viewer") },
    text: "role builder → viewer",
  },
  { name: "what was created", body: { type, after: binding("viewer") }, text: "identity Ann, group g, role viewer" },
  { name: "what was deleted", body: { type, before: binding("viewer") }, text: "identity Ann, group g, role viewer" },
  {
    name: "a value that was added or removed",
    body: { before: { description: "a" }, after: { email: "x@y" } },
    text: "description a → -, email - → x@y",
  },
  {
    name: "lists and numbers as JSON",
    body: { before: { bundles: ["a"], kind: 1 }, after: { bundles: ["a", "b"], kind: 2 } },
    text: 'bundles ["a"] → ["a","b"], kind 1 → 2',
  },
  { name: "an update of times alone", body: { before: { updateTime: "a" }, after: { updateTime: "b" } }, text: "" },
  {
    name: "a digest",
    body: { beforeDigest: { sha256: "x", fields: ["content"] }, after: { uid: "u", content: "small" } },
    text: "content small, too large to be shown",
  },
  {
    name: "long texts in part",
    body: { after: { description: "d".repeat(100) } },
    text: `description ${"d".repeat(39)}…`,
  },
  {
    name: "many fields in part",
    body: { after: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`field${i}`, "v"])) },
    text: `${Array.from({ length: 40 }, (_, i) => `field${i} v`)
      .join(", ")
      .slice(0, 119)}…`,
  },
];

describe("a change in a few words", () => {
  for (const { name, body, text } of cases) {
    test(name, () => assert.equal(formatChange(body), text));
  }
});
