// Every setting of the service in one table. The help, docs/settings.md and the JSON schema are generated from it: run
// `npm run gen` after a change. The names of flags and environment variables follow from the keys.
import { parseRegistrySecret } from "../kernel/files.js";
import { tokenAlgorithms } from "../kernel/jws.js";
import { parseLoginProviders } from "../kernel/login-providers.js";
import { defaultLimits, parseLimits, type QuotaLimits, quotas } from "../kernel/quotas.js";
import { MAX_GROUP_DEPTH } from "../kernel/uidp.js";
import { dataSettings } from "./data-settings.js";
import { checkAuthorities, checkCertificate, checkPrivateKey } from "./pem.js";
import {
  define,
  duration,
  file,
  flag,
  integer,
  integerOrAuto,
  issuerKeys,
  listenAddress,
  networks,
  oneOf,
  optionalListenAddress,
  origin,
  origins,
  type Setting,
  sinks,
  size,
  text,
  words,
} from "./setting-types.js";

/** The table, in the groups in which it is described. */
const groups = {
  "Address and TLS": {
    listen: listenAddress({
      help: "address and port to listen on; an address that other machines can reach requires TLS or --behind-proxy",
      default: "127.0.0.1:8080",
      since: "0.1.0",
    }),
    baseUrl: origin({
      help: "URL at which clients reach the service, if it differs from --listen; also the audience of API tokens",
      unset: "the address listened on",
      since: "0.1.0",
    }),
    audiences: words({
      help: "further audiences that the service accepts in tokens, such as the host of the registry",
      placeholder: "names",
      range: "at most 7 names without blanks, such as registry.example.org, separated by commas",
      max: 7,
      // Requests list audiences with commas between, and compare them without a slash at the end.
      pattern: "[!-+.0-~-][!-+--~]{0,254}|/[!-+--~]{1,254}",
      default: "",
      since: "0.3.0",
    }),
    issuer: origin({ help: "issuer of API tokens", unset: "the base URL", since: "0.1.0" }),
    errorDomain: text({
      help: "domain of the ErrorInfo in error details",
      placeholder: "name",
      range: "1 to 255 characters of ASCII without blanks",
      pattern: "[!-~]{1,255}",
      unset: "iam.<base host>",
      since: "0.1.0",
    }),
    tlsCert: file({
      help: "certificate chain to serve TLS with, in PEM",
      checkContent: checkCertificate,
      since: "0.1.0",
    }),
    tlsKey: file({
      help: "private key of the certificate, in PEM; mode 0600",
      checkContent: checkPrivateKey,
      isPrivate: true,
      see: "operations.md#tls-certificates",
      since: "0.1.0",
    }),
    behindProxy: flag({
      help: "allow cleartext on an address that other machines can reach, because a proxy in front terminates TLS",
      default: "false",
      since: "0.1.0",
    }),
    trustedProxies: networks({
      help: "addresses or networks of proxies whose forwarded client addresses are trusted",
      unset: "none",
      see: "production.md#proxies",
      since: "0.1.0",
    }),
    forwardedHeader: oneOf(["X-Forwarded-For", "Forwarded"], {
      aliases: { "x-forwarded-for": "X-Forwarded-For", forwarded: "Forwarded" },
      help: "header field in which these proxies send the address of the client; the other field is ignored",
      default: "X-Forwarded-For",
      see: "production.md#proxies",
      since: "0.11.0",
    }),
    corsOrigins: origins({
      help: "origins whose scripts may call the service from browsers, or * for all",
      star: true,
      default: "",
      since: "0.1.0",
    }),
    corsHeaders: words({
      help: "additional header fields that these scripts may send; those of the protocols and of tracing are always allowed",
      placeholder: "names",
      range: "at most 32 names of header fields, such as x-api-key, separated by commas",
      max: 32,
      pattern: "[!#$%&'*+.^_`|~0-9A-Za-z\\-]{1,64}",
      default: "",
      see: "gateway.md",
      since: "0.11.0",
    }),
    console: flag({
      help: "serve the web console at /console",
      default: "true",
      see: "console.md",
      since: "1.14.0",
    }),
  },
  Data: dataSettings,
  "Login and tokens": {
    loginProviders: file({
      help: "JSON file that lists the login providers of this service",
      unset: "none",
      checkContent: (content) => void parseLoginProviders(content.toString()),
      see: "login.md",
      since: "0.1.0",
    }),
    registration: oneOf(["invite", "open"], {
      help: "whether a person needs an invite to sign in for the first time",
      default: "invite",
      see: "login.md",
      since: "0.1.0",
    }),
    headlessConfirmation: oneOf(["explicit", "code"], {
      help: "headless logins of programs that show no code: explicit asks the person to confirm them in words, code rejects them",
      default: "explicit",
      see: "security.md#headless-logins",
      since: "0.3.0",
    }),
    trustedIssuers: origins({
      help: "origins of token issuers that may use http or a private network",
      default: "",
      since: "0.1.0",
    }),
    issuerKeys: issuerKeys({
      help: "keys of token issuers, from files or URLs instead of discovery; files are read again when they change",
      default: "",
      see: "workloads.md#keys-without-discovery",
      since: "0.11.0",
    }),
    outboundProxy: origin({
      help: "HTTP proxy for requests to token issuers, login providers and AWS; requests to the origins in --trusted-issuers do not use it",
      unset: "none",
      see: "security.md#outbound-proxy",
      since: "0.11.0",
    }),
    trustedSinks: sinks({
      help: "origins or networks of event sinks that may use private addresses and ports other than 443; https is still required",
      default: "",
      see: "events.md#sinks",
      since: "1.3.0",
    }),
    sinkCa: file({
      help: "certificate authorities that trusted sinks may use, in PEM",
      unset: "those of Node",
      checkContent: checkAuthorities,
      see: "events.md#sinks",
      since: "1.3.0",
    }),
    exchangeTokenLife: duration({
      help: "longest lifetime, from issue to expiry, of a token that can be exchanged",
      min: "5m",
      max: "48h",
      default: "25h",
      see: "workloads.md#lifetimes",
      since: "0.11.0",
    }),
    awsStsOrigins: origins({
      help: "origins of AWS STS to which Arbor may send signed requests",
      unset: "those of AWS",
      since: "0.1.0",
    }),
    tokenAlgorithm: oneOf(tokenAlgorithms, {
      help: "signature algorithm of API tokens; after a change the service generates a new key immediately",
      default: "RS256",
      see: "operations.md#keys",
      since: "0.3.0",
    }),
    keyRotation: duration({
      help: "how long a key signs API tokens before the next key replaces it",
      min: "1h",
      max: "3650d",
      default: "30d",
      see: "operations.md#keys",
      since: "0.1.0",
    }),
    jwksMaxAge: duration({
      help: "how long other services may cache the public keys of API tokens; a new key signs only after it has been published for this long. At most half of --key-rotation",
      min: "10s",
      max: "7d",
      default: "5m",
      see: "operations.md#keys",
      since: "0.1.0",
    }),
  },
  Registry: {
    registryUrl: origin({
      help: "URL of the container registry that trusts this service",
      unset: "none",
      see: "registry.md",
      since: "0.1.0",
    }),
    registryService: text({
      help: "name of the registry in its tokens (auth.token.service in its configuration)",
      placeholder: "name",
      range: "1 to 255 characters of ASCII without blanks",
      pattern: "[!-~]{1,255}",
      default: "arbor",
      see: "registry.md",
      since: "0.1.0",
    }),
    registrySecretFile: file({
      help: "file with the secret that the registry sends to /registry/notifications; 32 characters or more, mode 0600",
      unset: "none",
      checkContent: (content) => void parseRegistrySecret(content.toString()),
      isPrivate: true,
      see: "registry.md",
      since: "0.1.0",
    }),
    catalogGroup: text({
      help: "group whose repos ListCatalogImages shows to every organisation; repos of its subgroups are not shown",
      placeholder: "uid",
      range: "the uid of a group",
      pattern: `[0-9a-f]{40}(?:/[0-9a-f]{16}){0,${MAX_GROUP_DEPTH - 1}}`,
      unset: "none, which is an empty list",
      see: "registry.md#the-catalogue",
      since: "1.12.0",
    }),
  },
  "Callers and quotas": {
    rootCreation: oneOf(["users", "owners", "off"], {
      help: "who may create root groups",
      default: "users",
      since: "0.1.0",
    }),
    quotas: define(
      {
        help: "limits of root groups per person and of resources per organisation",
        default: Object.entries(defaultLimits)
          .map(([name, limit]) => `${name}=${limit}`)
          .join(","),
        unset: "the limits in operations.md",
        see: "operations.md#quotas",
        since: "0.2.0",
      },
      {
        placeholder: "kind=limit,...",
        range: `limits such as roots=5,tags=2000000, from 0 to 2147483647, of ${Object.keys(quotas).join(", ")}`,
        schema: { type: "string" },
        parse: parseLimits,
        format: formatLimits,
      },
    ),
    strictBody: flag({
      help: "whether requests with unknown fields in JSON bodies are rejected; otherwise these fields are ignored",
      default: "false",
      since: "0.1.0",
    }),
  },
  "Memory and overload": {
    requestBuffer: size({
      help: "memory for request bodies; one caller may use a quarter, and all callers without a token together 16 MiB",
      min: "32MiB",
      max: "64GiB",
      default: "128MiB",
      since: "0.2.0",
    }),
    responseBuffer: size({
      formerName: "answerBuffer",
      help: "memory for responses; one caller may use a quarter, all callers without a token together 16 MiB, and a single list without pages 100 MB",
      min: "128MiB",
      max: "64GiB",
      default: "256MiB",
      since: "0.2.0",
    }),
    connectionsPerAddress: integer({
      help: "open connections per client address; further connections are rejected. Has no effect with --behind-proxy",
      placeholder: "number",
      min: 1,
      max: 1_000_000,
      default: "2000",
      see: "observability.md#overload",
      since: "0.6.0",
    }),
    maxWait: duration({
      help: "how long a call may queue before it begins, including the time it waits for the database; after that it fails with UNAVAILABLE",
      min: "1s",
      max: "10m",
      default: "5s",
      see: "observability.md#overload",
      since: "1.1.0",
    }),
    keepAlive: duration({
      help: "how long an idle connection stays open; set it longer than the idle timeout of the load balancer in front",
      min: "1s",
      max: "1h",
      default: "75s",
      see: "production.md#proxies",
      since: "1.1.0",
    }),
    workers: integerOrAuto({
      help: "number of processes that serve calls; auto means the smallest of the number of processors, the memory divided by 400 MiB, and 8",
      placeholder: "number",
      min: 1,
      max: 64,
      default: "1",
      see: "operations.md#workers",
      since: "1.4.0",
    }),
    drainDelay: duration({
      help: "how long the service keeps serving after SIGTERM while /readyz reports that it is not ready, so that load balancers move to another node",
      min: "0s",
      max: "30s",
      default: "0s",
      see: "operations.md#health-and-stopping",
      since: "0.11.0",
    }),
    drainTime: duration({
      help: "how long calls in flight may take to end when the service stops",
      min: "1s",
      max: "1h",
      default: "30s",
      see: "operations.md#health-and-stopping",
      since: "0.6.0",
    }),
  },
  "Logs, metrics and audit": {
    logLevel: oneOf(["fatal", "error", "warn", "info", "debug", "trace", "silent"], {
      help: "minimum severity of log lines",
      default: "info",
      since: "0.1.0",
    }),
    metricsListen: optionalListenAddress({
      help: "address and port of the metrics endpoint, which needs no authentication, or off",
      unset: "127.0.0.1:9464, or a free port where that one is taken",
      see: "observability.md#metrics",
      since: "0.6.0",
    }),
    accessLog: oneOf(["errors", "all", "off"], {
      help: "requests to write to the log: all, only those that fail, or none. true means all, false means off",
      aliases: { true: "all", yes: "all", on: "all", 1: "all", false: "off", no: "off", 0: "off" },
      isSwitch: true,
      default: "all",
      see: "observability.md#logs",
      since: "0.1.0",
    }),
    auditRetention: duration({
      help: "how long rows of the audit log are kept before they are deleted",
      min: "1d",
      max: "36500d",
      unset: "for ever",
      see: "operations.md#retention",
      since: "0.6.0",
    }),
  },
} as const;

function formatLimits(limits: QuotaLimits): string {
  return Object.entries(limits)
    .map(([name, limit]) => `${name}=${limit}`)
    .join(",");
}

type Groups = typeof groups;
type Merged<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer All) => void ? All : never;
type Table = Merged<Groups[keyof Groups]>;

export type SettingName = keyof Table;
/** The former names of settings, which programs that embed the service may still use. */
export type FormerSettingName = "answerBuffer";
export type Settings = { readonly [K in SettingName]: Table[K] extends Setting<infer T> ? T : never };

export const settings = Object.assign({}, ...Object.values(groups)) as Table;

/** The names of all settings, in the order of the table. */
export const settingNames = Object.keys(settings) as readonly SettingName[];

/** Settings by name, as what describes the table takes them. */
export type SettingTable = Readonly<Record<string, Setting<unknown>>>;

/** The groups of the table, in their order. */
export const settingGroups: Readonly<Record<string, SettingTable>> = groups;

/** All names that may be given: those of the table, and former ones. */
export function listAcceptedNames(table: SettingTable = settings): string[] {
  return Object.entries(table).flatMap(([name, { formerName }]) =>
    formerName === undefined ? name : [name, formerName],
  );
}

/** The flag of a setting, such as `--base-url`. */
export function flagOf(name: string): string {
  return `--${kebab(name)}`;
}

/** The environment variable of a setting, such as `ARBOR_BASE_URL`. */
export function variableOf(name: string): string {
  return `ARBOR_${kebab(name).replaceAll("-", "_").toUpperCase()}`;
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

// What errors call a setting: the flag, the variable or the key of the file that gave its value.

/** Where a value comes from, and what named it there, such as `--listen`, `ARBOR_LISTEN` or the path of the file. */
export interface ValueSource {
  readonly from: "flag" | "environment" | "file" | "default";
  readonly name?: string;
  /** The key in the file, where it is the former name of the setting. */
  readonly key?: string;
}

export type ValueSources = Readonly<Record<string, ValueSource>>;

// Beside the settings, so that whatever has them can name them in its errors.
const remembered = new WeakMap<Settings, ValueSources>();

/** Remembers where the values of these settings come from. */
export function rememberSources(values: Settings, sources: ValueSources): void {
  remembered.set(values, sources);
}

/** Where the values of these settings come from. */
export function sourcesOf(values: Settings): ValueSources {
  return remembered.get(values) ?? {};
}

/** What gave the value of a setting, such as `ARBOR_DATA`; its flag where nothing did. */
export function labelOf(values: Settings, name: SettingName): string {
  const source = remembered.get(values)?.[name];
  return source === undefined || source.from === "default" ? flagOf(name) : describeSource(name, source);
}

/** Where a value was given, as errors name it. */
export function describeSource(setting: string, { from, name = "", key = setting }: ValueSource): string {
  return from === "file" ? `${name}: ${key}` : name;
}

/** Settings that cannot be used; the message names each and the rule it breaks. */
export class SettingsError extends Error {
  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "SettingsError";
  }
}
