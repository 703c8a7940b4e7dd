// The kinds of settings: how a value is written, which values are accepted, and how both are described in the help, in
// docs/settings.md and in the JSON schema.

import { BlockList, isIP } from "node:net";
import type { ListenAddress } from "../kernel/ip-address.js";

/** A JSON schema of one value. */
export type ValueSchema = Readonly<Record<string, unknown>>;

/** A kind of values. */
export interface Kind<T> {
  /** What a value is called in the help, such as `duration`; undefined for flags without a value. */
  readonly placeholder?: string | undefined;
  /** The accepted values, such as `1h to 365d`. Errors say `must be` before it. */
  readonly range: string;
  /** The range has a lower and an upper limit, which the help mentions. */
  readonly hasLimits?: boolean;
  /** The schema of a value in a file. It may be stricter than `parse`. */
  readonly schema: ValueSchema;
  /** The flag needs no value, which means `true`, and has a form `--no-…`, which means `false`. */
  readonly isSwitch?: boolean;
  /** The value is the path of a file that must be readable. */
  readonly isFile?: boolean;
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

/** Defines a setting of a kind. */
export function define<T, R extends Row>(row: R, kind: Kind<T>): Setting<ValueOf<T, R>> {
  const fallback = row.default === undefined ? undefined : kind.parse(row.default);
  return { ...kind, ...row, fallback } as Setting<ValueOf<T, R>>;
}

/** Text. @param row `pattern` is what it must match, and `range` says so */
export function text<R extends Row & { placeholder: string; range: string; pattern: RegExp }>(row: R) {
  const { pattern, placeholder, range } = row;
  const parse = (given: string) => (pattern.test(given) ? given : reject(range));
  return define<string, R>(row, { placeholder, range, schema: stringSchema(pattern), parse, format: String });
}

/** A switch, which is on or off. */
export function flag<R extends Row & { default: "true" | "false" }>(row: R) {
  const parse = (given: string) => {
    if (/^(true|1|yes|on)$/i.test(given)) return true;
    if (/^(false|0|no|off)$/i.test(given)) return false;
    return reject("true or false");
  };
  const schema = { enum: [true, false, "true", "false", "1", "0", "yes", "no", "on", "off"] };
  return define<boolean, R>(row, { range: "true or false", schema, isSwitch: true, parse, format: String });
}

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
  const schema = { enum: [...words, ...Object.keys(aliases), ...truths] };
  return define<T, R>(row, { placeholder: words.join("|"), range, schema, isSwitch, parse, format: String });
}

const UNITS_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** A duration in seconds, between two others. */
export function duration<R extends Row & { min: string; max: string }>(row: R) {
  const range = `${row.min} to ${row.max}`;
  const [least, most] = [parseDuration(row.min), parseDuration(row.max)];
  const parse = (given: string) => {
    const seconds = parseDuration(given);
    return seconds >= least && seconds <= most ? seconds : reject(`a number of s, m, h or d, such as 30d: ${range}`);
  };
  const schema = stringSchema(/^[0-9]{1,6}[smhd]$/);
  return define<number, R>(row, {
    placeholder: "duration",
    range,
    hasLimits: true,
    schema,
    parse,
    format: formatDuration,
  });
}

// NaN for what is no duration.
function parseDuration(given: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(given);
  return Number(match?.[1]) * (UNITS_S[match?.[2] ?? ""] ?? Number.NaN);
}

/** Formats seconds in the largest unit that gives a whole number, such as `30d`. */
function formatDuration(seconds: number): string {
  return formatIn(UNITS_S, seconds);
}

const UNITS_BYTES: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** A size in bytes, between two others. */
export function size<R extends Row & { min: string; max: string }>(row: R) {
  const range = `${row.min} to ${row.max}`;
  const [least, most] = [parseSize(row.min), parseSize(row.max)];
  const parse = (given: string) => {
    const bytes = parseSize(given);
    return bytes >= least && bytes <= most ? bytes : reject(`a number of KiB, MiB or GiB, such as 128MiB: ${range}`);
  };
  const schema = stringSchema(/^[0-9]{1,6}(KiB|MiB|GiB)$/);
  const format = (bytes: number) => formatIn(UNITS_BYTES, bytes);
  return define<number, R>(row, { placeholder: "size", range, hasLimits: true, schema, parse, format });
}

function parseSize(given: string): number {
  const match = /^(\d{1,6})(KiB|MiB|GiB)$/.exec(given);
  return Number(match?.[1]) * (UNITS_BYTES[match?.[2] ?? ""] ?? Number.NaN);
}

function formatIn(units: Readonly<Record<string, number>>, value: number): string {
  const found = Object.entries(units).findLast(([, factor]) => value % factor === 0);
  return found === undefined ? String(value) : `${value / found[1]}${found[0]}`;
}

/** A whole number between two others. */
export function integer<R extends Row & { placeholder: string; min: number; max: number }>(row: R) {
  const { placeholder, min, max } = row;
  const range = `${min} to ${max}`;
  const parse = (given: string) => {
    const value = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
    return value >= min && value <= max ? value : reject(`a whole number: ${range}`);
  };
  const schema = { anyOf: [{ type: "integer", minimum: min, maximum: max }, stringSchema(/^[0-9]{1,15}$/)] };
  return define<number, R>(row, { placeholder, range, hasLimits: true, schema, parse, format: String });
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
    ...{ placeholder: "file", range, schema: { type: "string" }, parse, format: String },
    ...{ isFile: true, isPrivate: row.isPrivate, checkContent: row.checkContent },
  });
}

/** Whether connections to `host` come from this machine alone. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** An address to listen on. */
export function listenAddress<R extends Row>(row: R) {
  const range = "host:port, such as 127.0.0.1:8080 or [::1]:8080";
  const parse = (given: string): ListenAddress => {
    const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(given);
    const port = Number(match?.[3]);
    if (!match || port > 65535) return reject(range);
    return { host: match[1] ?? match[2] ?? "", port };
  };
  const format = ({ host, port }: ListenAddress) => `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const schema = stringSchema(/^(\[[0-9a-fA-F:]+\]|[^:[\]]+):[0-9]{1,5}$/);
  return define<ListenAddress, R>(row, { placeholder: "host:port", range, schema, parse, format });
}

/** An address to listen on, or `off`. */
export function optionalListenAddress<R extends Row>(row: R) {
  const { parse: parseAddress, format, schema, placeholder } = listenAddress(row);
  const range = "off, or host:port, such as 127.0.0.1:9464";
  const parse = (given: string): ListenAddress | "off" => {
    if (given === "off") return "off";
    try {
      return parseAddress(given) as ListenAddress;
    } catch {
      return reject(range);
    }
  };
  return define<ListenAddress | "off", R>(row, {
    placeholder,
    range,
    schema: { anyOf: [{ const: "off" }, schema] },
    parse,
    format: (value) => (value === "off" ? value : format(value)),
  });
}

const ORIGIN = "an http or https URL without path, query or user";

function parseOrigin(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  const isOrigin =
    url && /^https?:$/.test(url.protocol) && url.pathname === "/" && !url.search && !url.hash && !url.username;
  return isOrigin ? url.origin : reject(ORIGIN);
}

/** An origin: a URL without a path. */
export function origin<R extends Row>(row: R) {
  const schema = stringSchema(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^/?#@]+\/?$/);
  return define<string, R>(row, { placeholder: "url", range: ORIGIN, schema, parse: parseOrigin, format: String });
}

/** Origins, separated by commas. @param row `star` also accepts `*`, for all of them */
export function origins<R extends Row & { star?: true }>(row: R) {
  const range = `${row.star ? "* or " : ""}a comma-separated list of origins, such as https://app.example.org`;
  const parse = (given: string): readonly string[] => {
    if (row.star && given.trim() === "*") return ["*"];
    try {
      // A star within an origin would match nothing, although it looks like a pattern.
      if (given.includes("*")) return reject(range);
      return given.split(",").map((one) => parseOrigin(one.trim()));
    } catch {
      return reject(range);
    }
  };
  return defineList(row, "origins", range, parse);
}

/** A list of words, separated by commas. @param row `max` is how many there may be, `pattern` what each must match */
export function words<R extends Row & { placeholder: string; range: string; max: number; pattern: RegExp }>(row: R) {
  const { placeholder, range, max, pattern } = row;
  const parse = (given: string): readonly string[] => {
    const names = given.split(",").map((name) => name.trim());
    return names.length <= max && names.every((name) => pattern.test(name)) ? names : reject(range);
  };
  return defineList(row, placeholder, range, parse);
}

function defineList<R extends Row>(
  row: R,
  placeholder: string,
  range: string,
  parse: (given: string) => readonly string[],
) {
  const format = (values: readonly string[]) => values.join(",");
  const parseList = (given: string) => (given === "" ? [] : parse(given));
  const schema = { type: "string" };
  return define<readonly string[], R>(row, { placeholder, range, schema, parse: parseList, format });
}

/** IP addresses and networks, separated by commas. */
export function networks<R extends Row>(row: R) {
  const range = "IP addresses or networks, such as 10.0.0.0/8, separated by commas";
  const parse = (given: string): BlockList => {
    const list = new BlockList();
    for (const one of given.split(",")) {
      const [address = "", prefix, ...rest] = one.trim().split("/");
      const family = isIP(address);
      const bits = family === 4 ? 32 : 128;
      const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1;
      if (family === 0 || rest.length > 0 || length < 0 || length > bits) return reject(range);
      list.addSubnet(address, length, family === 4 ? "ipv4" : "ipv6");
    }
    return list;
  };
  // Node describes a rule as `Subnet: IPv4 10.0.0.0/8`, the newest first.
  const format = (list: BlockList) =>
    list.rules
      .map((rule) => rule.replace(/^.* /, ""))
      .reverse()
      .join(",");
  return define<BlockList, R>(row, { placeholder: "addresses", range, schema: { type: "string" }, parse, format });
}

function stringSchema(pattern: RegExp): ValueSchema {
  return { type: "string", pattern: pattern.source.replaceAll("\\/", "/") };
}

function reject(range: string): never {
  throw new Error(`must be ${range}`);
}
