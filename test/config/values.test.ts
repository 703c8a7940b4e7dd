// The edges of what every setting accepts. The JSON schema of the file accepts all that the program accepts, but switches in capitals.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { resolveWithSources, type SettingName, settingNames, settings } from "../../src/config/config.js";
import { buildSchema } from "../../src/config/describe.js";
import type { Setting } from "../../src/config/setting-types.js";
import { quotas } from "../../src/kernel/quotas.js";
import { memoryDir } from "../support/temp-dir.js";

const file = join(memoryDir(), "arbor.json");
/** What must hold between settings. */
const BETWEEN = / (go together|needs --\S+|has no effect with --.*)$/;

/** Whether the program accepts a value in the file. */
function isAccepted(name: string, value: unknown): boolean {
  writeFileSync(file, JSON.stringify({ [name]: value }));
  try {
    resolveWithSources({ flags: {}, env: {}, file });
    return true;
  } catch (error) {
    const isAbout = (line: string) => line.startsWith(`${file}: ${name} `) && !BETWEEN.test(line);
    return !(error as Error).message.split("\n").some(isAbout);
  }
}

const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(buildSchema());

interface Values {
  readonly accepted: readonly unknown[];
  readonly rejected: readonly unknown[];
}

/** Numbers of each unit at the edges of a range, which is in the smallest unit. */
function edges(units: Readonly<Record<string, number>>, min: number, max: number): Values {
  const [accepted, rejected]: [string[], string[]] = [[], []];
  for (const [unit, factor] of Object.entries(units)) {
    const [least, most] = [Math.ceil(min / factor), Math.floor(max / factor)];
    rejected.push(`${least - 1}${unit}`, `${most + 1}${unit}`);
    // No whole number of days is within an hour.
    if (least <= most) accepted.push(`${least}${unit}`, `${most}${unit}`);
  }
  return { accepted, rejected };
}

const [M, H, D] = [60, 3_600, 86_400];
const SECONDS = { s: 1, m: M, h: H, d: D };
const [MIB, GIB] = [1024 ** 2, 1024 ** 3];
const BYTES = { KiB: 1024, MiB: MIB, GiB: GIB };

function duration(min: number, max: number): Values {
  const { accepted, rejected } = edges(SECONDS, min, max);
  return {
    accepted: [...accepted, `00${accepted[0]}`],
    rejected: [...rejected, "30", "30D", "1.5h", "-1h", "5 m", "d", 30],
  };
}

function size(min: number, max: number): Values {
  const { accepted, rejected } = edges(BYTES, min, max);
  return { accepted, rejected: [...rejected, "128", "128MB", "128mib", "1GiB ", 128] };
}

const origin: Values = {
  accepted: [
    ...["https://api.example.org", "http://localhost:9", "HTTPS://A_b.Example.org:443/", "http://[::1]:8080"],
    ...[
      "http://127.0.0.1:65535",
      "http://a:0",
      "http://4f3c2a",
      "http://a.b.:00080",
      " https://a\n",
      "https://bücher.de",
    ],
  ],
  rejected: [
    ...["api.example.org", "x", "https://a/b", "http://x?", "http://x?y", "http://x#", "http://u@x", "http://@x"],
    ...["http://a b", "http://a:65536", "http://a:", "http://[::1", "http://[1:2]", "http://1.2.3.256", "http://1.2.3"],
    ...["http://a.0x1", "http://", "https:a", "https:\\\\a", "ftp://a", "//a", "http://a..b", "https://a,https://b", 5],
  ],
};

function originList(...others: readonly string[]): Values {
  const { accepted, rejected } = origin;
  return {
    accepted: [...accepted, ...accepted.map((one) => `https://first , ${one}`), "https://a,https://b", ...others],
    rejected: [
      ...rejected.filter((one) => one !== "https://a,https://b"),
      ...rejected.map((one) => `https://first,${one}/`).filter((one) => one !== "https://first,https://a,https://b/"),
      ...[",", "https://a,", "https://*.example.org", "*,*", "https://a,*", "null", " "],
    ],
  };
}

const path: Values = { accepted: ["key.pem", "/a b", "5"], rejected: [5, true, null, ["a"]] };
const flag: Values = {
  accepted: [true, false, "true", "TRUE", "False", "1", "0", "yes", "No", "on", "OFF"],
  rejected: ["maybe", "2", "tru", "true ", 1, 0, null],
};
const name: Values = { accepted: ["a", "x".repeat(255), "~"], rejected: ["a b", "ä", "x".repeat(256), "a\n", 7, true] };
const words = (accepted: readonly string[], ...rejected: readonly unknown[]): Values => ({
  accepted,
  rejected: [
    ...rejected,
    ...accepted.map((word) => ` ${word}`),
    accepted[0]?.toUpperCase() === accepted[0] ? "x" : "X",
  ],
});

const postgres: Values = {
  accepted: ["postgres://db/arbor", "postgresql://", "socket:/run", "/run/postgresql arbor"],
  rejected: ["mysql://db", "Postgres://db", "postgres:db", "postgres://a\nb", 5],
};

const values: Readonly<Record<SettingName, Values>> = {
  listen: {
    accepted: ["[::1]:8080", "127.0.0.1:0", "localhost:65535", "a:00080", "[1:2:3:4:5:6:7:8]:1"],
    rejected: ["8080", "a:b:80", "a:65536", "a:", ":80", "[x]:80", "[1:2]:80", "a b:80", "::1:80", "a:0x50", 80, true],
  },
  baseUrl: origin,
  audiences: {
    accepted: ["a", "a,b", "a , b", "a,b,c,d,e,f,g", "//", "-", "/a", "x".repeat(255)],
    rejected: [",", "a,", "a b", "/", "a,/", "/ ,a", "ä", "x".repeat(256), "a,b,c,d,e,f,g,h", " ", 5, ["a"]],
  },
  issuer: origin,
  errorDomain: name,
  tlsCert: path,
  tlsKey: path,
  behindProxy: flag,
  forwardedHeader: words(
    ["X-Forwarded-For", "Forwarded", "x-forwarded-for", "forwarded"],
    "X-Real-IP",
    "FORWARDED",
    "X-Forwarded-For,Forwarded",
    true,
  ),
  trustedProxies: {
    accepted: ["10.0.0.0/8", "10.0.0.1", "0.0.0.0/0", "1.2.3.4/32", "::/0, ::1/128", "fe80::1,::ffff:1.2.3.4/096"],
    rejected: [
      "x",
      "10.0.0.0/33",
      "::/129",
      "10.0.0",
      "10.0.0.256",
      "1.2.3.4/",
      "1.2.3.4/8/8",
      "::1%lo",
      "1.2.3.4,",
      5,
    ],
  },
  corsOrigins: originList("*", " * "),
  console: flag,
  corsHeaders: {
    accepted: ["x-api-key", " X-Api-Key , x-b ", "!#$%&'*+.^_`|~", "a".repeat(64), Array(32).fill("x").join()],
    rejected: ["a b", "a:", "a,,b", "a,", "(a)", "ä", "a".repeat(65), Array(33).fill("x").join(), ["x"], 1],
  },
  data: path,
  databaseUrl: postgres,
  databaseUrlFile: path,
  databasePooler: words(["none", "transaction"], "session", "statement", true),
  databaseDirectUrl: postgres,
  databaseDirectUrlFile: path,
  databasePoolSize: {
    accepted: ["2", "1000", "0010", 2, 1_000],
    rejected: ["1", "1001", "-2", "2.5", "many", 1, 1_001, 2.5, true],
  },
  databaseTlsMode: words(["disable", "require", "verify-ca", "verify-full"], "prefer", true, 1),
  databaseTlsCa: path,
  databaseTlsCert: path,
  databaseTlsKey: path,
  masterKeyFile: path,
  create: flag,
  migrate: flag,
  loginProviders: path,
  registration: words(["invite", "open"], "closed", true),
  headlessConfirmation: words(["explicit", "code"], "none", false),
  trustedIssuers: { ...originList(), rejected: [...originList().rejected, "*"] },
  trustedSinks: {
    accepted: [
      ...["https://hooks.example:8443", "10.0.0.0/8", "::1", "https://a , 10.0.0.1,fe80::/10", "HTTPS://[::1]:1/"],
      ...["0.0.0.0/0", "https://10.0.0.1"],
    ],
    rejected: [
      "http://hooks.example",
      "hooks.example",
      "https://a/b",
      "10.0.0.0/33",
      "10.0.0.1:80",
      "*",
      "https://a,",
      " ",
      5,
    ],
  },
  sinkCa: path,
  issuerKeys: {
    accepted: [
      ...["https://cluster.example=cluster.jwks", "https://a=/b c/d.json", "https://a/x/y=b", "https://a:8443/=b"],
      ...[
        "https://a=https://b/keys?app=1&x=y",
        "https://a=HTTPS://b",
        " https://first.example=b , https://second.example=c=d ",
      ],
      ...["http://127.0.0.1:80/x=./b", "http://[::1]=b"],
    ],
    rejected: [
      ...["https://a", "https://a=", "=b", "a=b", "https://a=b,", ",https://a=b", "https://a?x=b", "https://a#x=b"],
      ...[
        "https://u@a=b",
        "https://a b=c",
        "https://a=http:",
        "https://a=https://",
        "https://a=https://b/#x",
        "ftp://a=b",
      ],
      ...[
        "https://a=https://u@b/",
        "https://a=https://b/x y",
        "http://1.2.3.256=b",
        "http://[::1]x=b",
        "http://a:65536=b",
        " ",
        5,
      ],
    ],
  },
  outboundProxy: origin,
  exchangeTokenLife: duration(5 * M, 48 * H),
  awsStsOrigins: { ...originList(), rejected: [...originList().rejected, "*"] },
  tokenAlgorithm: words(["RS256", "ES256"], "HS256", "rs256"),
  keyRotation: duration(H, 3_650 * D),
  jwksMaxAge: duration(10, 7 * D),
  registryUrl: origin,
  registryService: name,
  catalogGroup: {
    accepted: ["0123456789abcdef0123456789abcdef01234567", `${"0".repeat(40)}${"/0123456789abcdef".repeat(59)}`],
    rejected: [
      ...["0".repeat(39), "0".repeat(41), "A".repeat(40), `${"0".repeat(40)}/`, `${"0".repeat(40)}/1`, "nginx", " "],
      ...[`${"0".repeat(40)}${"/0123456789abcdef".repeat(60)}`, `${"0".repeat(40)} `, 5, true],
    ],
  },
  registrySecretFile: path,
  rootCreation: words(["users", "owners", "off"], "nobody", false),
  quotas: {
    accepted: [
      ...Object.keys(quotas).flatMap((kind) => [`${kind}=0`, `${kind}=2147483647`, `${kind}=007`]),
      ...["roots=5,tags=7", " roots=5 , tags=7 "],
    ],
    rejected: [
      ...Object.keys(quotas).flatMap((kind) => [`${kind}=2147483648`, `${kind}=-1`, `${kind}=`, kind, `x${kind}=1`]),
      ...["root=5", "roots=5,", "roots = 5", "roots=1=2", "toString=1", "roots=0x10", " ", 5],
    ],
  },
  strictBody: flag,
  requestBuffer: size(32 * MIB, 64 * GIB),
  responseBuffer: size(128 * MIB, 64 * GIB),
  connectionsPerAddress: {
    accepted: ["1", "1000000", "01", 1, 1_000_000],
    rejected: ["0", "1000001", 0, 1_000_001, 1.5, "1.5", "1e3", "0x10", " 1", -1, true],
  },
  workers: {
    accepted: ["auto", "1", "64", "02", 1, 64],
    rejected: ["0", "65", "AUTO", "auto ", "1.5", " 1", 0, 65, 1.5, -1, true],
  },
  maxWait: duration(1, 600),
  keepAlive: duration(1, H),
  drainDelay: duration(0, 30),
  drainTime: duration(1, H),
  logLevel: words(["fatal", "error", "warn", "info", "debug", "trace", "silent"], "verbose"),
  metricsListen: {
    accepted: ["off", "127.0.0.1:9464", "[::1]:65535", "a:0"],
    rejected: ["9464", "on", "127.0.0.1:", "a:65536", "OFF", "off:", false],
  },
  accessLog: {
    accepted: ["errors", "all", "off", true, false, "true", "false", "yes", "no", "on", "1", "0"],
    rejected: ["verbose", "TRUE", "All", 1, 0],
  },
  auditRetention: duration(D, 36_500 * D),
};

for (const key of settingNames) {
  const { accepted, rejected } = values[key];
  const { default: fallback = "" } = settings[key] as Setting<unknown>;
  test(`${key}: what the program accepts at the edges`, () => {
    for (const value of [...accepted, fallback, ""]) assert.ok(isAccepted(key, value), JSON.stringify(value));
    for (const value of [...rejected, null, [], {}, 1e21]) assert.ok(!isAccepted(key, value), JSON.stringify(value));
  });

  test(`${key}: the schema accepts that, and rejects other types`, () => {
    for (const value of [...accepted, fallback, ""]) {
      if (values[key] === flag && /[A-Z]/.test(String(value))) continue;
      assert.ok(validate({ [key]: value }), JSON.stringify(value));
    }
    const types = rejected.filter((value) => !["string", "number"].includes(typeof value));
    for (const value of [...types, null, [], {}, 1e21])
      assert.equal(validate({ [key]: value }), false, JSON.stringify(value));
  });
}

test("names that are valid in form and not as URLs, and one that is given twice", () => {
  for (const [key, value] of [
    ["quotas", "roots=1,tags=2,roots=3"],
    ["baseUrl", "https://\u{1f4a9}\u00ad\u2488.example"],
    ["baseUrl", "https://xn--a"],
    ["issuerKeys", "https://a=b,https://c=d,https://a=e"],
  ] as const) {
    assert.ok(!isAccepted(key, value), `${key}: ${value}`);
  }
});
