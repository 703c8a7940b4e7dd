// The kinds of settings: how a value is written, which values are accepted, and how both are described in the help, in
// docs/settings.md and in the JSON schema.

import { BlockList, isIP } from "node:net";
import type { ListenAddress } from "../kernel/ip-address.js";
import { type IssuerKeySource, isKeyUrl, parseKeyFile } from "../kernel/issuer-keys.js";
import { isIPv6, isIssuer, isNetwork, isOrigin, isPlainUrl, isPort, parseWholeNumber } from "./addresses.js";

export type ValueSchema = Readonly<Record<string, unknown>>;

export interface Kind<T> {
  /** What a value is called in the help, such as `duration`; undefined for flags without a value. */
  readonly placeholder?: string | undefined;
  /** The accepted values, such as `1h to 365d`. Errors say `must be` before it. */
  readonly range: string;
  /** The range has a lower and an upper limit, which the help mentions. */
  readonly hasLimits?: boolean;
  /** The schema of a value in a file: types, words and limits of numbers. It may accept more than `parse`. */
  readonly schema: ValueSchema;
  /** What else than a text a file may have. */
  readonly jsonType?: "boolean" | "number";
  /** The flag needs no value, which means `true`, and has a form `--no-…`, which means `false`. */
  readonly isSwitch?: boolean;
  /** The value is the path of a file that must be readable. */
  readonly isFile?: boolean;
  /** The files that a value names which is no path itself. */
  listFiles?(value: T): readonly string[];
  /** Other users must not be able to read the file. */
  readonly isPrivate?: boolean | undefined;
  /** Checks the content of the file; throws Error with the rule that it violates. */
  readonly checkContent?: ((content: Buffer) => void) | undefined;
  /** @throws Error with the rule that the text violates, such as `must be 1h to 365d` */
  parse(text: string): T;
  /** Formats a value as `parse` reads it. */
  format(value: T): string;
}

/** What every row of the table says. */
export interface Row {
  readonly help: string;
  /** The name that the setting had before, which flags, variables and files may still have. */
  readonly formerName?: string;
  /** The version that had the setting first. */
  readonly since: string;
  /** The default as one would write it. Without it the value is undefined unless set. */
  readonly default?: string;
  /** What applies where there is no default, such as `the base URL`; described in place of a default that is long. */
  readonly unset?: string;
  /** The page of docs/ that says more, such as `login.md` or `operations.md#quotas`. */
  readonly see?: string;
  /** The value is never printed. A secret needs a row with `contentOf` for its file. */
  readonly secret?: true;
  /** The setting whose value the file contains. */
  readonly contentOf?: string;
}

/** A setting: its row and its kind. */
export interface Setting<T> extends Row, Kind<T> {
  /** The value unless set. */
  readonly fallback: T;
}

type ValueOf<T, R extends Row> = R extends { readonly default: string } ? T : T | undefined;

export function define<T, R extends Row>(row: R, kind: Kind<T>): Setting<ValueOf<T, R>> {
  const fallback = row.default === undefined ? undefined : kind.parse(row.default);
  return { ...kind, ...row, fallback } as Setting<ValueOf<T, R>>;
}

const TEXT: ValueSchema = { type: "string" };

function wholePattern(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, "u");
}

/** Text. @param row `pattern` is what the whole of it must match, and `range` says so */
export function text<R extends Row & { placeholder: string; range: string; pattern: string }>(row: R) {
  const { placeholder, range } = row;
  const pattern = wholePattern(row.pattern);
  const parse = (given: string) => (pattern.test(given) ? given : reject(range));
  return define<string, R>(row, { placeholder, range, schema: TEXT, parse, format: String });
}

/** A switch, which is on or off. */
export function flag<R extends Row & { default: "true" | "false" }>(row: R) {
  const range = "true or false";
  const parse = (given: string) => {
    const isOn = ON.includes(given.toLowerCase());
    return isOn || OFF.includes(given.toLowerCase()) ? isOn : reject(range);
  };
  return define<boolean, R>(row, {
    ...{ range, parse, format: String, isSwitch: true },
    ...{ schema: { enum: [true, false, ...ON, ...OFF, ""] }, jsonType: "boolean" },
  });
}

const ON = ["true", "1", "yes", "on"];
const OFF = ["false", "0", "no", "off"];

/**
 * One of some words.
 *
 * @param row `aliases` are other spellings of them. With `isSwitch` the flag may be given without a value, or as `--no-…`:
 * `true` and `false` must be words or aliases then.
 */
export function oneOf<
  const T extends string,
  R extends Row & { aliases?: Readonly<Record<string, NoInfer<T>>>; isSwitch?: true },
>(words: readonly T[], row: R) {
  const { aliases = {} as Readonly<Record<string, T>>, isSwitch = false } = row;
  const range = `one of ${words.join(", ")}`;
  const parse = (given: string): T => {
    const word = Object.hasOwn(aliases, given) ? aliases[given] : words.find((one) => one === given);
    return word ?? reject(`one of ${[...words, ...truths].join(", ")}`);
  };
  const truths = Object.keys(aliases).flatMap((alias) => (/^(true|false)$/.test(alias) ? [alias === "true"] : []));
  const schema = { enum: [...words, ...Object.keys(aliases), ...truths, ""] };
  return define<T, R>(row, {
    ...{ placeholder: words.join("|"), range, schema, isSwitch, parse, format: String },
    ...(truths.length > 0 && { jsonType: "boolean" }),
  });
}

const UNITS_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** A duration in seconds, between two others. */
export function duration<R extends Row & { min: string; max: string }>(row: R) {
  const example = "a number of s, m, h or d, such as 30d";
  return define<number, R>(row, { placeholder: "duration", ...measure(UNITS_S, row, example), format: formatDuration });
}

/** Formats seconds in the largest unit that gives a whole number, such as `30d`. */
function formatDuration(seconds: number): string {
  return formatIn(UNITS_S, seconds);
}

const UNITS_BYTES: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** A size in bytes, between two others. */
export function size<R extends Row & { min: string; max: string }>(row: R) {
  const example = "a number of KiB, MiB or GiB, such as 128MiB";
  const format = (bytes: number) => formatIn(UNITS_BYTES, bytes);
  return define<number, R>(row, { placeholder: "size", ...measure(UNITS_BYTES, row, example), format });
}

function measure(units: Readonly<Record<string, number>>, { min, max }: { min: string; max: string }, example: string) {
  const convert = (given: string) => {
    const [, number = "", unit = ""] = /^([0-9]+)([A-Za-z]+)$/.exec(given) ?? [];
    return Object.hasOwn(units, unit) ? Number(number) * (units[unit] ?? 0) : Number.NaN;
  };
  const range = `${min} to ${max}`;
  const [least, most] = [convert(min), convert(max)];
  const parse = (given: string) => {
    const value = convert(given);
    return value >= least && value <= most ? value : reject(`${example}: ${range}`);
  };
  return { range, hasLimits: true, schema: TEXT, parse };
}

function formatIn(units: Readonly<Record<string, number>>, value: number): string {
  // Zero of every unit is the same.
  const found = Object.entries(units).findLast(([, factor]) => value % factor === 0 && (value > 0 || factor === 1));
  return found === undefined ? String(value) : `${value / found[1]}${found[0]}`;
}

/** A whole number between two others. */
export function integer<R extends Row & { placeholder: string; min: number; max: number }>(row: R) {
  const { placeholder, min, max } = row;
  const range = `${min} to ${max}`;
  const parse = (given: string) => parseBetween(given, row, `a whole number: ${range}`);
  return define<number, R>(row, { placeholder, range, hasLimits: true, parse, format: String, ...numberSchema(row) });
}

function parseBetween(given: string, { min, max }: { min: number; max: number }, rule: string): number {
  const value = parseWholeNumber(given);
  return value >= min && value <= max ? value : reject(rule);
}

// The limits are for numbers, and a text is one as well.
function numberSchema({ min, max }: { min: number; max: number }) {
  return { schema: { type: ["integer", "string"], minimum: min, maximum: max }, jsonType: "number" } as const;
}

/** A whole number between two others, or `auto`. */
export function integerOrAuto<R extends Row & { placeholder: string; min: number; max: number }>(row: R) {
  const { placeholder, min, max } = row;
  const range = `auto, or ${min} to ${max}`;
  const parse = (given: string) => (given === "auto" ? given : parseBetween(given, row, range));
  return define<number | "auto", R>(row, {
    ...{ placeholder, range, hasLimits: true, parse, format: String },
    ...numberSchema(row),
  });
}

/**
 * A file.
 *
 * @param row `checkContent` is called with what it contains, and throws Error with the rule that it violates; `isPrivate`:
 * other users must not be able to read it
 */
export function file<R extends Row & { checkContent?: (content: Buffer) => void; isPrivate?: true }>(row: R) {
  const parse = (given: string) => given;
  const range = "a file that can be read";
  return define<string, R>(row, {
    ...{ placeholder: "file", range, schema: TEXT, parse, format: String },
    ...{ isFile: true, isPrivate: row.isPrivate, checkContent: row.checkContent },
  });
}

/** Whether connections to `host` come from this machine alone. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function parseAddress(given: string, rule: string): ListenAddress {
  const [, host = "", port = ""] = /^(.*):([0-9]+)$/.exec(given) ?? [];
  const isHost = host.startsWith("[") ? host.endsWith("]") && isIPv6(host.slice(1, -1)) : /^[^\s:/[\]]+$/u.test(host);
  if (!isHost || !isPort(port)) reject(rule);
  return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) };
}

function formatAddress({ host, port }: ListenAddress): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** An address to listen on. */
export function listenAddress<R extends Row>(row: R) {
  const range = "host:port, such as 127.0.0.1:8080 or [::1]:8080";
  return define<ListenAddress, R>(row, {
    ...{ placeholder: "host:port", range, schema: TEXT, format: formatAddress },
    parse: (given) => parseAddress(given, range),
  });
}

/** An address to listen on, or `off`. */
export function optionalListenAddress<R extends Row>(row: R) {
  const range = "off, or host:port, such as 127.0.0.1:9464";
  return define<ListenAddress | "off", R>(row, {
    ...{ placeholder: "host:port", range, schema: TEXT },
    format: (value) => (value === "off" ? value : formatAddress(value)),
    parse: (given) => (given === "off" ? given : parseAddress(given, range)),
  });
}

// A name in another script than ASCII may have the form and be invalid.
function parseOrigin(given: string, rule: string): string {
  return isOrigin(given.trim()) && URL.canParse(given) ? new URL(given).origin : reject(rule);
}

/** An origin: a URL without a path. */
export function origin<R extends Row>(row: R) {
  const range = "an http or https URL without path, query or user";
  return define<string, R>(row, {
    ...{ placeholder: "url", range, schema: TEXT, format: String },
    parse: (given) => parseOrigin(given, range),
  });
}

/** Origins, separated by commas. @param row `star` also accepts `*`, for all of them */
export function origins<R extends Row & { star?: true }>(row: R) {
  const range = `${row.star ? "* or " : ""}a comma-separated list of origins, such as https://app.example.org`;
  return defineList(row, "origins", range, (items) =>
    row.star && items.length === 1 && items[0] === "*" ? items : items.map((one) => parseOrigin(one, range)),
  );
}

/** A list of words, separated by commas. @param row `max` is how many there may be, `pattern` what each must match */
export function words<R extends Row & { placeholder: string; range: string; max: number; pattern: string }>(row: R) {
  const { placeholder, range, max } = row;
  const pattern = wholePattern(row.pattern);
  return defineList(row, placeholder, range, (items) =>
    items.length <= max && items.every((one) => pattern.test(one)) ? items : reject(range),
  );
}

function defineList<R extends Row>(
  row: R,
  placeholder: string,
  range: string,
  convert: (items: readonly string[]) => readonly string[],
) {
  return define<readonly string[], R>(row, {
    ...{ placeholder, range, schema: TEXT, format: (values: readonly string[]) => values.join(",") },
    parse: (given) => (given === "" ? [] : convert(splitList(given))),
  });
}

/** Splits a list at its commas, and takes the blanks around items away. */
function splitList(given: string): string[] {
  return given.split(",").map((item) => item.trim());
}

/** Issuers and where their keys are, separated by commas. */
export function issuerKeys<R extends Row>(row: R) {
  const range =
    "issuers with a file or a URL, such as https://cluster.example=/etc/arbor/cluster.jwks, separated by commas";
  const isUsable = (one: IssuerKeySource) =>
    isIssuer(one.issuer) &&
    URL.canParse(one.issuer) &&
    (isKeyUrl(one) ? isPlainUrl(one.source) && URL.canParse(one.source) : /^\S/.test(one.source));
  const parse = (given: string): readonly IssuerKeySource[] => {
    const sources = splitList(given).map((item): IssuerKeySource => {
      const [issuer = "", ...source] = item.split("=");
      return { issuer, source: source.join("=") };
    });
    if (!sources.every(isUsable)) reject(range);
    for (const one of sources) {
      if (sources.some((other) => other !== one && other.issuer === one.issuer))
        throw new Error(`names ${one.issuer} twice`);
    }
    return sources;
  };
  return define<readonly IssuerKeySource[], R>(row, {
    ...{ placeholder: "issuer=source,...", range, schema: TEXT, checkContent: (content) => void parseKeyFile(content) },
    format: (sources) => sources.map(({ issuer, source }) => `${issuer}=${source}`).join(","),
    listFiles: (sources) => sources.filter((one) => !isKeyUrl(one)).map(({ source }) => source),
    parse: (given) => (given === "" ? [] : parse(given)),
  });
}

/** IP addresses and networks, separated by commas. */
export function networks<R extends Row>(row: R) {
  const range = "IP addresses or networks, such as 10.0.0.0/8, separated by commas";
  const parse = (given: string): BlockList => {
    const list = new BlockList();
    for (const one of splitList(given)) {
      if (!isNetwork(one)) reject(range);
      const [address = "", prefix] = one.split("/");
      const isIPv4 = isIP(address) === 4;
      list.addSubnet(address, Number(prefix ?? (isIPv4 ? 32 : 128)), isIPv4 ? "ipv4" : "ipv6");
    }
    return list;
  };
  // Node describes a rule as `Subnet: IPv4 10.0.0.0/8`, the newest first.
  const format = (list: BlockList) =>
    list.rules
      .map((rule) => rule.replace(/^.* /, ""))
      .reverse()
      .join(",");
  return define<BlockList, R>(row, {
    ...{ placeholder: "addresses", range, schema: TEXT, parse, format },
  });
}

/** Https origins, IP addresses and networks, separated by commas. */
export function sinks<R extends Row>(row: R) {
  const range =
    "https origins, addresses or networks, such as https://hooks.example:8443 or 10.0.0.0/8, separated by commas";
  const parse = (one: string) => {
    if (/^https:/i.test(one)) return parseOrigin(one, range);
    return isNetwork(one) ? one : reject(range);
  };
  return defineList(row, "origins", range, (items) => items.map(parse));
}

function reject(range: string): never {
  throw new Error(`must be ${range}`);
}
