// The JSON schema of the file of settings: names, types, words and limits of numbers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { settingNames, settings } from "../../src/config/config.js";
import { PROJECT } from "../support/project.js";

const read = (path: string) => readFileSync(join(PROJECT, path), "utf8");
const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
  JSON.parse(read("docs/settings.schema.json")),
);

describe("the schema accepts", () => {
  // Those of compose and Kubernetes are in test/deploy and test/kubernetes.
  test("the file of the Debian package, and none with another name in it", () => {
    const content: Record<string, unknown> = JSON.parse(read("deploy/debian/arbor.json"));
    assert.ok(Object.keys(content).length > 1);
    assert.ok(validate(content), JSON.stringify(validate.errors));
    assert.equal(validate({ ...content, lisen: "127.0.0.1:8080" }), false);
  });

  test("a file of all settings with their defaults, and an empty one", () => {
    const all = Object.fromEntries(settingNames.map((name) => [name, settings[name].default ?? ""]));
    assert.ok(validate({ $schema: "settings.schema.json", ...all }), JSON.stringify(validate.errors));
    assert.ok(validate({}));
  });
});

describe("the schema rejects", () => {
  for (const [reason, content] of [
    ["an unknown name", { dta: "x" }],
    ["no object", []],
    ["a schema that has no name", { $schema: 5 }],
    ["a number for a text", { listen: 8080 }],
    ["a list for a text", { audiences: ["a", "b"] }],
    ["a number for a duration", { keyRotation: 30 }],
    ["a number for a switch", { behindProxy: 1 }],
    ["a word that a switch does not have", { behindProxy: "perhaps" }],
    ["a word that is not one of those", { databaseTlsMode: "prefer" }],
    ["a switch for a number", { connectionsPerAddress: true }],
    ["a number below its least", { connectionsPerAddress: 0 }],
    ["a number above its most", { workers: 65 }],
    ["a number that is not whole", { workers: 1.5 }],
    ["no value", { data: null }],
  ] as const) {
    test(reason, () => assert.equal(validate(content), false));
  }
});
