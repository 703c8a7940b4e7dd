// What is generated from the table of settings: the help, docs/settings.md and the JSON schema.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createProgram } from "../../src/cli/program.js";
import { resolveSettings, settingNames, settings, variableOf } from "../../src/config/config.js";
import { buildSchema, formatPage } from "../../src/config/describe.js";
import { duration, type Setting } from "../../src/config/setting-types.js";
import { type SettingTable, settingGroups } from "../../src/config/settings.js";
import { VERSION } from "../../src/kernel/version.js";
import { isOlder } from "../../src/store/version.js";
import { PROJECT } from "../support/project.js";

async function helpOf(...path: readonly string[]): Promise<string> {
  let command = await createProgram();
  for (const name of path) command = command.commands.find((one) => one.name() === name) ?? command;
  // Wide enough that no line is broken.
  return command.configureHelp({ helpWidth: 1_000 }).helpInformation();
}

const read = (name: string) => readFileSync(join(PROJECT, "docs", name), "utf8");

describe("a setting that is planted in the table", () => {
  const planted = duration({
    help: "how long a planted thing lasts",
    min: "2m",
    max: "9d",
    default: "3h",
    see: "operations.md",
    since: "9.8.7",
  });

  async function findPlanted() {
    const schema = buildSchema() as { properties: Record<string, unknown> };
    return {
      help: (await helpOf("serve")).split("\n").find((line) => line.includes("--planted-thing")),
      print: (await helpOf("config", "print")).includes("--planted-thing"),
      page: formatPage()
        .split(/^(?=##)/m)
        .find((section) => section.includes("plantedThing")),
      schema: schema.properties.plantedThing,
    };
  }

  test("is in the help, in docs/settings.md and in the schema, and can be set", async () => {
    const none = { help: undefined, print: false, page: undefined, schema: undefined };
    assert.deepEqual(await findPlanted(), none, "nothing has it before");
    const tables = [settings, settingGroups.Registry as SettingTable];
    for (const table of tables) Object.assign(table, { plantedThing: planted });
    (settingNames as string[]).push("plantedThing");
    try {
      const found = await findPlanted();
      const help =
        "how long a planted thing lasts; 2m to 9d; 3h unless set; see docs/operations.md (ARBOR_PLANTED_THING)";
      assert.match(String(found.help), /^ {2}--planted-thing <duration> +/);
      assert.equal(found.help?.replace(/^.*<duration> +/, ""), help);
      assert.equal(found.print, true);
      assert.equal(
        found.page,
        "### --planted-thing\n\nHow long a planted thing lasts. See [operations.md](operations.md).\n\n" +
          "- Default: `3h`\n- Flag: `--planted-thing <duration>`\n- Variable: `ARBOR_PLANTED_THING`\n- File key: `plantedThing`\n" +
          "- Accepted: 2m to 9d\n- Since: 9.8.7\n\n",
      );
      assert.deepEqual(found.schema, { description: `${help}; since 9.8.7`, type: "string", default: "3h" });
      const resolve = (value: string) => resolveSettings({ flags: {}, env: { ARBOR_PLANTED_THING: value } });
      assert.equal((resolve("5m") as unknown as Record<string, unknown>).plantedThing, 300);
      assert.throws(() => resolve("1m"), /^SettingsError: ARBOR_PLANTED_THING must be .*: 2m to 9d$/);
    } finally {
      for (const table of tables) delete (table as Record<string, unknown>).plantedThing;
      (settingNames as string[]).pop();
    }
    assert.deepEqual(await findPlanted(), none, "nothing has it afterwards");
  });
});

test("docs/settings.md and docs/settings.schema.json are as generated", () => {
  const advice = "run npm run gen:settings";
  assert.equal(read("settings.md"), formatPage(), advice);
  assert.deepEqual(JSON.parse(read("settings.schema.json")), buildSchema(), advice);
});

test("every setting is in a group, and says what it is and since when", () => {
  const grouped = Object.values(settingGroups).flatMap((group) => Object.keys(group));
  assert.deepEqual(grouped, settingNames);
  for (const [name, { help, since, see }] of Object.entries<Setting<unknown>>(settings)) {
    assert.ok(help.length > 10, name);
    assert.match(since, /^\d+\.\d+\.\d+$/, name);
    // A setting of the version that is being made may be newer than the last release.
    const [major = 0, minor = 0] = VERSION.split(".").map(Number);
    assert.ok(!isOlder(`${major}.${minor + 1}.0`, since), `${name}: since ${since}`);
    if (see !== undefined) assert.ok(read(see.replace(/#.*$/, "")).length > 0, name);
  }
});

test("the help of serve has every setting and its variable", async () => {
  const help = await helpOf("serve");
  for (const name of settingNames) assert.ok(help.includes(`(${variableOf(name)})`), name);
});

test("a default is written as its value is formatted", () => {
  for (const [name, setting] of Object.entries<Setting<unknown>>(settings)) {
    if (setting.default === undefined) assert.equal(setting.fallback, undefined, name);
    else assert.equal(setting.format(setting.fallback), setting.default, name);
  }
});
