// The rules for the fields of repos and tags. The builders of images read these fields, so a value that a builder
// would reject is rejected here.

import { type JsonValue, toJson, toJsonString } from "@bufbuild/protobuf";
import {
  CatalogTier,
  CustomOverlay_CommandOverride_Mode as CommandMode,
  type CustomOverlay,
  CustomOverlaySchema,
  CustomOverlay_FailMode as FailMode,
  CustomOverlay_Preflight_OnFailure as OnFailure,
  type SyncConfig,
} from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { type BrokenRule, breakRule } from "../../kernel/errors.js";
import { breakPattern, type FieldRule, isPrintable } from "../../pipeline/resource/rules.js";
import { isTagName, TAG_NAME } from "../oci/reference.js";
import { isRepoName } from "../oci/repo-path.js";

/** The largest number of entries in a list or map of a repo. */
const MAX_ENTRIES = 1_000;
/** The largest request that creates or updates a repo, in bytes: an overlay, a readme and lists, in JSON. */
export const MAX_REPO_REQUEST = 1024 * 1024;
/** The longest name, reference or address, in characters. */
const MAX_TEXT = 512;
/** The longest key, certificate or value of a variable, in characters. */
const MAX_CONTENT = 64 * 1024;
/** The longest sum of the texts of a list, in characters: lists of repos and tags show all of them. */
const MAX_LIST = 32 * 1024;
/** The longest JSON of an overlay, in characters. */
const MAX_OVERLAY = 256 * 1024;
/** The largest id of a user or a group. */
const MAX_ID = 2 ** 31 - 1;
/** The largest number of checks before the program of an image. */
const MAX_PREFLIGHTS = 32;
/** How long a check may take, in nanoseconds: an hour. */
const MAX_CHECK_NS = 3600e9;

const ALIAS = /^[a-zA-Z0-9_.\-/]*[a-zA-Z0-9_.-]:[a-zA-Z0-9_.-]+$/;
const PEM = /-----BEGIN [A-Z0-9 ]+-----[^-]+-----END [A-Z0-9 ]+-----/;
const BUNDLES = ["application", "base", "byol", "ai", "ai-gpu", "featured", "fips", "commercial", "emeritoss"];
const ADDRESS = /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,252})|\[[0-9a-fA-F:.]{2,45}\]):([1-9][0-9]{0,4})$/;
// As Go reads durations, without a sign: a sum of decimal numbers with units.
const DURATION = /^(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$/;
const DURATION_PART = /([0-9.]+)(ns|us|µs|μs|ms|s|m|h)/g;
const NANOSECONDS: Readonly<Record<string, number>> = {
  ...{ ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 },
};
const RESERVED_VARIABLE = "CHAINGUARD_";
const RESERVED_ANNOTATIONS = ["dev.chainguard.", "org.opencontainers."];

/** The rule for names of repos: the last component of a path in a registry. */
export const isRepoNameField: FieldRule = (value, field) => {
  const rule = `must match ^[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*$ and be at most 128 characters`;
  return typeof value === "string" && isRepoName(value) ? undefined : breakPattern(value, field, rule);
};

/** The rule for tiers of the catalogue: one that the API knows. */
export const isTier: FieldRule = (value, field) =>
  CatalogTier[value as CatalogTier] === undefined ? breakRule(field, "must be a catalogue tier") : undefined;

/** The rule for the bundles of a repo: keywords of the catalogue. */
export const isBundles: FieldRule = (value, field) =>
  findListFault(value, field, (one) => BUNDLES.includes(one), `must each be one of ${BUNDLES.join(", ")}`);

/** The rule for aliases: each a name, a colon and a tag. */
export const isAliases: FieldRule = (value, field) =>
  findListFault(value, field, (one) => one.length <= MAX_TEXT && ALIAS.test(one), `must each match ${ALIAS.source}`);

export const isTagNames: FieldRule = (value, field) =>
  findListFault(value, field, isTagName, `must each match ${TAG_NAME.source}`);

export const isTagNameField: FieldRule = (value, field) =>
  isTagName(String(value ?? "")) ? undefined : breakPattern(value, field, `must match ${TAG_NAME.source}`);

export const isLabels: FieldRule = (value, field) =>
  findListFault(value, field, isWord, "must each be one line without control characters");

/** The rule for how a repo is copied. The source itself is checked when it is looked up. */
export const isSyncConfig: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { source, google, amazon, azure } = value as SyncConfig;
  if (source === "") return breakRule(`${field}.source`, "is required");
  const broken = Object.entries({ source, google, amazon, azure }).find(([, text]) => text !== "" && !isWord(text));
  return broken && breakRule(`${field}.${broken[0]}`, `must be one line of at most ${MAX_TEXT} characters`);
};

/** The rule for overlays, which are added to images. */
export const isOverlay: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const overlay = value as CustomOverlay;
  if (toJsonString(CustomOverlaySchema, overlay).length > MAX_OVERLAY)
    return breakRule(field, `must be at most ${MAX_OVERLAY} characters as JSON`);
  return (
    findContentsFault(overlay.contents, `${field}.contents`) ??
    findMapFault(overlay.environment, `${field}.environment`, (key) =>
      key.includes("=") || key.startsWith(RESERVED_VARIABLE)
        ? `must not have names that contain = or begin with ${RESERVED_VARIABLE}`
        : undefined,
    ) ??
    findMapFault(overlay.annotations, `${field}.annotations`, (key) =>
      RESERVED_ANNOTATIONS.some((prefix) => key.startsWith(prefix))
        ? `must not have keys that begin with ${RESERVED_ANNOTATIONS.join(" or ")}`
        : undefined,
    ) ??
    findAccountsFault(overlay.accounts, `${field}.accounts`) ??
    findCertificatesFault(overlay.certificates, `${field}.certificates`) ??
    findPreflightFault(overlay.preflight, `${field}.preflight`) ??
    findCommandFault(overlay.commandOverride, `${field}.commandOverride`) ??
    findEnumFault(FailMode, overlay.failMode, `${field}.failMode`)
  );
};

/** The rule for overlays of their own, which must add something. */
export const isWholeOverlay: FieldRule = (value, field) => {
  if (value === undefined) return breakRule(field, "is required");
  return addsNothing(value as CustomOverlay) ? breakRule(field, "must add something") : isOverlay(value, field);
};

/** Whether an overlay has nothing but empty fields. */
export function addsNothing(overlay: CustomOverlay): boolean {
  // Fields without a value are not in the JSON, but messages with nothing in them are.
  const isEmpty = (json: JsonValue): boolean =>
    typeof json === "object" && json !== null && Object.values(json).every(isEmpty);
  return isEmpty(toJson(CustomOverlaySchema, overlay));
}

function findContentsFault(contents: CustomOverlay["contents"], field: string): BrokenRule | undefined {
  if (contents === undefined) return undefined;
  const { packages, runtimeRepositories, runtimeKeyring } = contents;
  return (
    findListFault(packages, `${field}.packages`, isWord, "must each be the name of a package") ??
    findListFault(
      runtimeRepositories,
      `${field}.runtimeRepositories`,
      isWebAddress,
      "must each be an http or https URL",
    ) ??
    findFilesFault(runtimeKeyring, `${field}.runtimeKeyring`, "a public key")
  );
}

function findAccountsFault(accounts: CustomOverlay["accounts"], field: string): BrokenRule | undefined {
  if (accounts === undefined) return undefined;
  const { runAs, users, groups } = accounts;
  if (!isOptionalWord(runAs)) return breakRule(`${field}.runAs`, `must be one line of at most ${MAX_TEXT} characters`);
  const user = (one: (typeof users)[number]) =>
    isAccount(one.username) &&
    isAccountId(one.uid) &&
    isAccountId(one.gid) &&
    [one.groupName, one.shell, one.homeDir].every(isOptionalWord);
  const group = (one: (typeof groups)[number]) =>
    isAccount(one.groupname) && isAccountId(one.gid) && one.members.every(isAccount);
  return (
    findEntriesFault(users, `${field}.users`, user, `must each have a username and ids from 0 to ${MAX_ID}`) ??
    findEntriesFault(groups, `${field}.groups`, group, `must each have a groupname and an id from 0 to ${MAX_ID}`)
  );
}

function findCertificatesFault(certificates: CustomOverlay["certificates"], field: string): BrokenRule | undefined {
  if (certificates === undefined) return undefined;
  const { additional, providers } = certificates;
  return (
    findFilesFault(additional, `${field}.additional`, "a certificate") ??
    findListFault(providers, `${field}.providers`, isWord, "must each be the name of a package")
  );
}

function findPreflightFault(checks: CustomOverlay["preflight"], field: string): BrokenRule | undefined {
  if (checks.length > MAX_PREFLIGHTS) return breakRule(field, `must be at most ${MAX_PREFLIGHTS}`);
  for (const [i, { tcp, path, timeout, interval, onFailure }] of checks.entries()) {
    const at = `${field}[${i}]`;
    if ((tcp === "") === (path === "")) return breakRule(at, "must have either tcp or path");
    if (tcp !== "" && !isAddress(tcp)) return breakRule(`${at}.tcp`, "must be a host and a port, such as db:5432");
    if (path !== "" && !(path.startsWith("/") && isWord(path)))
      return breakRule(`${at}.path`, `must be an absolute path of at most ${MAX_TEXT} characters`);
    const fault =
      findDurationFault(timeout, `${at}.timeout`) ??
      findDurationFault(interval, `${at}.interval`) ??
      findEnumFault(OnFailure, onFailure, `${at}.onFailure`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function findCommandFault(override: CustomOverlay["commandOverride"], field: string): BrokenRule | undefined {
  if (override === undefined) return undefined;
  const { command, mode } = override;
  if (command.length === 0) return breakRule(`${field}.command`, "is required");
  return (
    findListFault(
      command,
      `${field}.command`,
      (word) => word !== "" && isText(word),
      "must each be a word without control characters",
    ) ?? findEnumFault(CommandMode, mode, `${field}.mode`)
  );
}

function findEnumFault(names: Readonly<Record<number, string>>, value: number, field: string): BrokenRule | undefined {
  return names[value] === undefined ? breakRule(field, "must be a value that the API knows") : undefined;
}

function findDurationFault(text: string, field: string): BrokenRule | undefined {
  if (text === "") return undefined;
  const ns = text.length <= MAX_TEXT && DURATION.test(text) ? parseNanoseconds(text) : 0;
  if (ns > 0 && ns <= MAX_CHECK_NS) return undefined;
  return breakRule(field, "must be a duration such as 30s or 500ms, more than zero and at most an hour");
}

function parseNanoseconds(text: string): number {
  const parts = [...text.matchAll(DURATION_PART)];
  return parts.reduce((sum, [, number, unit = ""]) => sum + Number(number) * (NANOSECONDS[unit] ?? 0), 0);
}

function isAddress(text: string): boolean {
  const port = ADDRESS.exec(text)?.[1];
  return port !== undefined && Number(port) < 2 ** 16;
}

// The names become names of files in a fixed directory.
function findFilesFault(files: readonly { name: string; content: string }[], field: string, what: string) {
  const good = ({ name, content }: { name: string; content: string }) =>
    isWord(name) && !/^\.|\//.test(name) && isContent(content) && PEM.test(content);
  return findEntriesFault(files, field, good, `must each have the name of a file and ${what} in PEM`);
}

function findMapFault(
  map: Readonly<Record<string, string>>,
  field: string,
  findKeyFault: (key: string) => string | undefined,
): BrokenRule | undefined {
  const entries = Object.entries(map);
  if (entries.length > MAX_ENTRIES) return breakRule(field, `must be at most ${MAX_ENTRIES}`);
  if (!entries.every(([key, value]) => isWord(key) && isContent(value)))
    return breakRule(field, "must map names to texts");
  const rule = entries.map(([key]) => findKeyFault(key)).find((one) => one !== undefined);
  return rule === undefined ? undefined : breakRule(field, rule);
}

function findListFault(
  value: unknown,
  field: string,
  good: (one: string) => boolean,
  rule: string,
): BrokenRule | undefined {
  const texts = value as readonly string[];
  const fault = findEntriesFault(texts, field, good, rule);
  if (fault !== undefined) return fault;
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length > MAX_LIST ? breakRule(field, `must be at most ${MAX_LIST} characters together`) : undefined;
}

function findEntriesFault<T>(all: readonly T[], field: string, good: (one: T) => boolean, rule: string) {
  if (all.length > MAX_ENTRIES) return breakRule(field, `must be at most ${MAX_ENTRIES}`);
  return all.every(good) ? undefined : breakRule(field, rule);
}

function isWord(text: string): boolean {
  return text !== "" && isOptionalWord(text);
}

function isOptionalWord(text: string): boolean {
  return text.length <= MAX_TEXT && isPrintable(text);
}

// Colons and commas separate the fields of /etc/passwd and /etc/group.
function isAccount(name: string): boolean {
  return isWord(name) && !/[:,\s]/.test(name);
}

function isAccountId(id: number): boolean {
  return id >= 0 && id <= MAX_ID;
}

function isContent(text: string): boolean {
  return text.length <= MAX_CONTENT && isText(text);
}

// Whether `text` is printable, line breaks and tabs aside.
export function isText(text: string): boolean {
  return isPrintable(text.replace(/[\t\r\n]/g, ""));
}

function isWebAddress(text: string): boolean {
  return isWord(text) && /^https?:\/\//.test(text) && URL.canParse(text);
}
