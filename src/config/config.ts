// Every setting of the service in one table: flag over environment over file
// over default. Anything wrong is found before anything is opened, and all of
// it is reported at once.
import { readFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import { tokenAlgorithms } from "../kernel/jws.js";
import { defaultLimits, parseLimits, type QuotaLimits } from "../kernel/quotas.js";

/** One setting: how it is written, read and explained. */
interface Setting<T> {
  /** Turns what was written into the value; throws Error with the rule it breaks. */
  readonly parse: (text: string) => T;
  readonly fallback: T;
  readonly help: string;
  /** What a flag's value is called in the help; absent for switches. */
  readonly placeholder?: string;
  /** Never printed. */
  readonly secret?: true;
}

const text = (placeholder: string, fallback: string, help: string): Setting<string> => ({
  parse: (given) => given,
  fallback,
  help,
  placeholder,
});

const optional = (
  placeholder: string,
  help: string,
  parse = (given: string) => given,
): Setting<string | undefined> => ({
  parse,
  fallback: undefined,
  help,
  placeholder,
});

const flag = (help: string, fallback = false): Setting<boolean> => ({
  parse: (given) => {
    if (/^(true|1|yes|on)$/i.test(given)) return true;
    if (/^(false|0|no|off)$/i.test(given)) return false;
    throw new Error("must be true or false");
  },
  fallback,
  help,
});

const oneOf = <T extends string>(values: readonly T[], fallback: T, help: string): Setting<T> => ({
  parse: (given) => {
    const found = values.find((value) => value === given);
    if (found === undefined) throw new Error(`must be one of ${values.join(", ")}`);
    return found;
  },
  fallback,
  help,
  placeholder: values.join("|"),
});

const UNITS_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

// In seconds.
const duration = (help: string, fallback: string): Setting<number> => {
  const parse = (given: string) => {
    const match = /^(\d{1,6})([smhd])$/.exec(given);
    const seconds = Number(match?.[1]) * (UNITS_S[match?.[2] ?? ""] ?? 0);
    if (!(seconds > 0)) throw new Error("must be a number of s, m, h or d, such as 30d");
    return seconds;
  };
  return { parse, fallback: parse(fallback), help: `${help}; ${fallback} unless set`, placeholder: "duration" };
};

const UNITS_BYTES: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

// In bytes.
const size = (help: string, fallback: string, leastBytes: number): Setting<number> => {
  const parse = (given: string) => {
    const match = /^(\d{1,6})(KiB|MiB|GiB)$/.exec(given);
    const bytes = Number(match?.[1]) * (UNITS_BYTES[match?.[2] ?? ""] ?? 0);
    if (!(bytes >= leastBytes)) throw new Error(`must be a number of KiB, MiB or GiB, at least ${leastBytes} bytes`);
    return bytes;
  };
  return { parse, fallback: parse(fallback), help: `${help}; ${fallback} unless set`, placeholder: "size" };
};

/** An address to listen on. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

function listenAddress(given: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(given);
  const port = Number(match?.[3]);
  if (!match || port > 65535) throw new Error("must be host:port, such as 127.0.0.1:8080 or [::1]:8080");
  return { host: match[1] ?? match[2] ?? "", port };
}

function httpUrl(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search || url.hash || url.username) {
    throw new Error("must be an http or https URL without path, query or user");
  }
  return url.origin;
}

function networkList(given: string): BlockList {
  const list = new BlockList();
  for (const one of given.split(",")) {
    const [address = "", prefix, ...rest] = one.trim().split("/");
    const family = isIP(address);
    const bits = family === 4 ? 32 : 128;
    const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1;
    if (family === 0 || rest.length > 0 || length < 0 || length > bits) {
      throw new Error("must be IP addresses or networks, such as 10.0.0.0/8, separated by commas");
    }
    list.addSubnet(address, length, family === 4 ? "ipv4" : "ipv6");
  }
  return list;
}

// As browsers send them, so that they can be compared as they are. A star within one would match
// nothing, quite against what it looks like.
function originList(given: string): readonly string[] {
  if (given.trim() === "*") return ["*"];
  try {
    if (given.includes("*")) throw new Error("no patterns");
    return given.split(",").map((origin) => httpUrl(origin.trim()));
  } catch {
    throw new Error("must be * or a comma-separated list of origins, such as https://app.example.org");
  }
}

// Requests list audiences with commas between, and compare them without a slash at the end.
function audienceList(given: string): readonly string[] {
  const names = given.split(",").map((name) => name.trim());
  if (names.length <= 7 && names.every((name) => /^[!-~]{1,255}$/.test(name) && name !== "/")) return names;
  throw new Error("must be at most 7 names without blanks, such as registry.example.org, separated by commas");
}

/** The table. The names of flags and environment variables follow from the keys. */
export const settings = {
  listen: {
    parse: listenAddress,
    fallback: { host: "127.0.0.1", port: 8080 },
    help: "address to listen on; 127.0.0.1:8080 unless set",
    placeholder: "host:port",
  } satisfies Setting<ListenAddress>,
  data: text("directory", "./data", "data directory of the SQLite store and of the master key"),
  databaseUrl: { ...optional("url", "PostgreSQL database to use instead of SQLite"), secret: true as const },
  migrate: flag("bring a SQLite database of an older version up to date before it is used", true),
  baseUrl: optional("url", "address clients reach the service by; also the audience of API tokens", httpUrl),
  audiences: {
    parse: audienceList,
    fallback: [],
    help: "further names that tokens may be for, such as the host of the registry, comma-separated; none unless set",
    placeholder: "names",
  } satisfies Setting<readonly string[]>,
  issuer: optional("url", "issuer of API tokens; the base URL unless set", httpUrl),
  errorDomain: optional("name", "domain in error details; iam.<base host> unless set"),
  masterKeyFile: optional("file", "key that seals secrets at rest; <data>/master.key unless set"),
  tlsCert: optional("file", "certificate chain to serve TLS with, in PEM"),
  tlsKey: optional("file", "private key of the certificate, in PEM"),
  behindProxy: flag("allow cleartext on a non-loopback address: a proxy in front ends TLS"),
  trustedProxies: {
    parse: networkList,
    fallback: undefined,
    help: "addresses or networks of proxies whose X-Forwarded-For counts, comma-separated; none unless set",
    placeholder: "addresses",
  } satisfies Setting<BlockList | undefined>,
  strictBody: flag("reject unknown fields in JSON bodies"),
  corsOrigins: {
    parse: originList,
    fallback: [],
    help: "origins whose scripts may call from browsers, comma-separated, or * for all; none unless set",
    placeholder: "origins",
  } satisfies Setting<readonly string[]>,
  trustedIssuers: {
    parse: (given: string) => given.split(",").map((origin) => httpUrl(origin.trim())),
    fallback: [],
    help: "origins of issuers that may be http or in a private network, comma-separated; none unless set",
    placeholder: "origins",
  } satisfies Setting<readonly string[]>,
  loginProviders: optional("file", "JSON file of the login providers of this service; see docs/login.md"),
  registration: oneOf(["invite", "open"], "invite", "whether people who sign in for the first time need an invite"),
  headlessConfirmation: oneOf(
    ["explicit", "code"],
    "explicit",
    "headless logins of programs that show no code: confirmed in words, or rejected",
  ),
  awsStsOrigins: {
    parse: (given: string) => given.split(",").map((origin) => httpUrl(origin.trim())),
    fallback: undefined,
    help: "origins of the AWS security token services that may be asked, comma-separated; those of AWS unless set",
    placeholder: "origins",
  } satisfies Setting<readonly string[] | undefined>,
  tokenAlgorithm: oneOf(
    tokenAlgorithms,
    "RS256",
    "signature algorithm of API tokens; a change takes effect with the next key, which is then made at once",
  ),
  keyRotation: duration("how long a key signs API tokens before another does", "30d"),
  jwksMaxAge: duration("how long others may keep the public keys, and so how long a new key waits", "5m"),
  registryUrl: optional("url", "address of the container registry that trusts this service", httpUrl),
  registryService: text("name", "arbor", "what the registry calls itself to this service, its auth.token.service"),
  registrySecretFile: optional("file", "secret by which the registry signs in at /registry/notifications"),
  rootCreation: oneOf(["users", "owners", "off"], "users", "who may create root groups"),
  requestBuffer: size("how much of request bodies is held at one time", "128MiB", 32 * 1024 ** 2),
  answerBuffer: size("how much of answers is held at one time", "384MiB", 128 * 1024 ** 2),
  quotas: {
    parse: parseLimits,
    fallback: defaultLimits,
    help: "how many root groups a person and how many things an organisation may have; see docs/operations.md",
    placeholder: "kind=limit,...",
  } satisfies Setting<QuotaLimits>,
  logLevel: oneOf(
    ["fatal", "error", "warn", "info", "debug", "trace", "silent"],
    "info",
    "least severe log line to write",
  ),
  accessLog: flag("write a log line for every request", true),
} as const;

/** The name of a setting. */
export type SettingName = keyof typeof settings;
/** All settings with their values. */
export type Settings = { readonly [K in SettingName]: (typeof settings)[K] extends Setting<infer T> ? T : never };

/** The flag of a setting, such as `--base-url`. */
export function flagOf(name: SettingName): string {
  return `--${kebab(name)}`;
}

/** The environment variable of a setting, such as `ARBOR_BASE_URL`. */
export function variableOf(name: SettingName): string {
  return `ARBOR_${kebab(name).replaceAll("-", "_").toUpperCase()}`;
}

/** Where settings may be given. */
export interface Sources {
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A JSON file whose keys are setting names, from `--config` or `ARBOR_CONFIG`. */
  readonly file?: string | undefined;
}

/** Settings that cannot be used; the message names each and the rule it breaks. */
export class SettingsError extends Error {
  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "SettingsError";
  }
}

/** Resolves all settings. @throws SettingsError naming everything that is wrong. */
export function resolveSettings({ flags, env, file }: Sources): Settings {
  const problems: string[] = [];
  const fromFile = file === undefined ? {} : readFile(file, problems);
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(settings) as [SettingName, Setting<unknown>][]) {
    const given = [
      [flagOf(key), flags[key]],
      [variableOf(key), env[variableOf(key)]],
      [`${file}: ${key}`, fromFile[key]],
    ].find(([, value]) => value !== undefined && value !== "");
    if (given === undefined) {
      values[key] = setting.fallback;
      continue;
    }
    try {
      values[key] = setting.parse(String(given[1]));
    } catch (error) {
      problems.push(`${given[0]} ${(error as Error).message}`);
    }
  }
  const resolved = values as Settings;
  if (problems.length === 0) problems.push(...contradictionsIn(resolved));
  if (problems.length > 0) throw new SettingsError(problems);
  return resolved;
}

function contradictionsIn(values: Settings): string[] {
  const problems: string[] = [];
  const { tlsCert, tlsKey, listen, behindProxy, databaseUrl, masterKeyFile } = values;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) problems.push("--tls-cert and --tls-key go together");
  if (tlsCert === undefined && !behindProxy && !isLoopback(listen.host)) {
    problems.push("--listen on a non-loopback address needs TLS, or --behind-proxy where a proxy in front ends it");
  }
  if (databaseUrl !== undefined && masterKeyFile === undefined) {
    problems.push("--database-url needs --master-key-file: nodes that share a database share the key");
  }
  return problems;
}

/** Whether connections to `host` come from this machine alone. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function readFile(file: string, problems: string[]): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof read !== "object" || read === null || Array.isArray(read)) throw new Error("must hold a JSON object");
    for (const [key, value] of Object.entries(read)) {
      if (!Object.hasOwn(settings, key)) problems.push(`${file}: ${key} is no setting`);
      else if (!["string", "number", "boolean"].includes(typeof value)) {
        problems.push(`${file}: ${key} must be a string, a number or a boolean`);
      }
    }
    return read as Record<string, unknown>;
  } catch (error) {
    problems.push(`${file}: ${(error as Error).message}`);
    return {};
  }
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
