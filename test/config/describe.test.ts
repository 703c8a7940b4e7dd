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
        anyOf: [{ const: "" }, { type: "string", pattern: (planted.schema as { readonly pattern: string }).pattern }],
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

  test("accepts an empty value of every setting", () => {
    for (const name of settingNames) assert.ok(validate({ [name]: "" }), name);
  });

  const units = ["s", "m", "h", "d", "KiB", "MiB", "GiB", "ms", ""];
  const numbers = [0, 1, 2, 9, 10, 11, 59, 60, 61, 99, 100, 101, 127, 128, 129, 131_071, 131_072, 131_073, 999_999];
  const edges: Readonly<Partial<Record<SettingName, readonly number[]>>> = {
    keyRotation: [3599, 3600, 3601, 87_599, 87_600, 87_601, 3649, 3650, 3651],
    jwksMaxAge: [604_799, 604_800, 604_801, 10_079, 10_080, 10_081, 167, 168, 169, 6, 7, 8],
    auditRetention: [86_399, 86_400, 86_401, 1439, 1440, 1441, 23, 24, 25, 875_999, 876_000, 876_001, 36_500, 36_501],
    drainTime: [3599, 3600, 3601],
    requestBuffer: [31, 32, 33, 32_767, 32_768, 32_769, 63, 64, 65, 65_535, 65_536, 65_537],
    answerBuffer: [63, 64, 65, 65_535, 65_536, 65_537],
    connectionsPerAddress: [999_999, 1_000_000, 1_000_001],
    overloadDelay: [59_999, 60_000, 60_001, 99_999],
  };
  for (const [name, own] of Object.entries(edges) as [SettingName, readonly number[]][]) {
    test(`${name}: has the range of the server, in every unit`, () => {
      const seeded = Array.from({ length: 100 }, (_, i) => (i * 48_271 * 16_807) % 1_000_003);
      const found = { true: 0, false: 0 };
      for (const number of [...numbers, ...own, ...seeded]) {
        for (const text of units.flatMap((unit) => [`${number}${unit}`, `0${number}${unit}`])) {
          const isRight = isParsed(name, text);
          found[`${isRight}`]++;
          assert.equal(validate({ [name]: text }), isRight, text);
        }
      }
      assert.ok(found.true > 0 && found.false > 0);
    });
  }

  for (const name of ["listen", "metricsListen"] as const) {
    test(`${name}: has the ports of the server`, () => {
      for (const port of ["0", "1", "9999", "10000", "65534", "65535", "65536", "70000", "99999", "00080", "000080"]) {
        const text = `127.0.0.1:${port}`;
        assert.equal(validate({ [name]: text }), isParsed(name, text), text);
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

function isParsed(name: SettingName, text: string): boolean {
  try {
    settings[name].parse(text);
    return true;
  } catch {
    return false;
  }
}
