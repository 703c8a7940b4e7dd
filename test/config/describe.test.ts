// What is generated from the table of settings: the help, docs/settings.md and the JSON schema.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { createProgram } from "../../src/cli/program.js";
import { resolveSettings, type SettingName, settingNames, settings, variableOf } from "../../src/config/config.js";
import { buildSchema, formatPage } from "../../src/config/describe.js";
import { duration, type Setting } from "../../src/config/setting-types.js";
import { type SettingTable, settingGroups } from "../../src/config/settings.js";
import { VERSION } from "../../src/kernel/version.js";
import { isOlder } from "../../src/store/version.js";
import { PROJECT } from "../support/project.js";

async function helpOf(...path: readonly string[]): Promise<string> {
  let command = await createProgram(path[0]);
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
        .split("\n")
        .find((line) => line.includes("plantedThing")),
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
        "| `--planted-thing <duration>` | `ARBOR_PLANTED_THING` | `plantedThing` | `3h` | 2m to 9d | 9.8.7 | " +
          "how long a planted thing lasts; see [operations.md](operations.md) |",
      );
      assert.deepEqual(found.schema, {
        description: `${help}; since 9.8.7`,
        type: "string",
        pattern: "^[0-9]{1,6}[smhd]$",
        default: "3h",
      });
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
    assert.match(since, /^0\.\d+\.\d+$/, name);
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

describe("the schema", () => {
  const validate = new Ajv2020({ strict: true, allErrors: true }).compile(buildSchema());

  // What the file accepts of a setting, and what it rejects; the parser says the same.
  const values: Readonly<Partial<Record<SettingName, readonly [right: unknown, ...wrong: unknown[]]>>> = {
    listen: ["[::1]:8080", "8080", "a:b:80", true],
    baseUrl: ["https://api.example.org", "api.example.org", "https://a/b"],
    audiences: ["a,b"],
    issuer: ["http://localhost:9", "x"],
    errorDomain: ["iam.example.org", "a b"],
    tlsCert: ["cert.pem"],
    tlsKey: ["key.pem"],
    behindProxy: [true, "maybe"],
    trustedProxies: ["10.0.0.0/8"],
    corsOrigins: ["*"],
    data: ["data"],
    databaseUrl: ["postgres://db/arbor", "mysql://db"],
    databaseUrlFile: ["url"],
    databaseTlsMode: ["verify-full", "prefer", true],
    databaseTlsCa: ["ca.pem"],
    databaseTlsCert: ["cert.pem"],
    databaseTlsKey: ["key.pem"],
    masterKeyFile: ["master.key"],
    migrate: ["off", "2"],
    loginProviders: ["providers.json"],
    registration: ["open", "closed"],
    headlessConfirmation: ["code", "none"],
    trustedIssuers: ["https://a.example,http://b.example"],
    awsStsOrigins: ["https://sts.example"],
    tokenAlgorithm: ["ES256", "HS256"],
    keyRotation: ["30d", "30", "30D", 30],
    jwksMaxAge: ["5m", "5 m"],
    registryUrl: ["https://registry.example.org", "registry"],
    registryService: ["arbor", "a b"],
    registrySecretFile: ["secret"],
    rootCreation: ["off", "nobody"],
    quotas: ["roots=5,tags=7", "roots", "roots=-1"],
    strictBody: [false, "maybe"],
    requestBuffer: ["128MiB", "128", "128MB"],
    answerBuffer: ["1GiB", "1G"],
    logLevel: ["debug", "verbose"],
    auditRetention: ["365d", "365", "365D"],
    metricsListen: ["127.0.0.1:9464", "9464", "on", "127.0.0.1:"],
    accessLog: [true, "verbose"],
  };

  for (const name of settingNames) {
    test(`${name}: accepts and rejects what the server does`, () => {
      const { parse, default: fallback } = settings[name] as Setting<unknown>;
      const [right = fallback, ...wrong] = values[name] ?? [];
      assert.notEqual(right, undefined, "a setting without a default needs a value here");
      assert.ok(validate({ [name]: right }), JSON.stringify(validate.errors));
      parse(String(right));
      for (const value of wrong) {
        assert.equal(validate({ [name]: value }), false, JSON.stringify(value));
        assert.throws(() => parse(String(value)), JSON.stringify(value));
      }
    });
  }

  test("accepts a file with all of them, and a file with none", () => {
    const all = Object.fromEntries(Object.entries(values).map(([name, [right]]) => [name, right]));
    assert.ok(validate({ $schema: "settings.schema.json", ...all }), JSON.stringify(validate.errors));
    assert.ok(validate({}));
  });

  for (const [reason, file] of [
    ["an unknown key", { dta: "x" }],
    ["null", { data: null }],
    ["a list", { audiences: ["a"] }],
    ["no object", []],
  ] as const) {
    test(`rejects ${reason}`, () => assert.equal(validate(file), false));
  }
});
