// The rules for what callers say of a repo. All of it is kept for whoever builds
// images by it, so a value is refused here that would be refused there.
import { toJsonString } from "@bufbuild/protobuf";
import {
  CatalogTier,
  type CustomOverlay,
  CustomOverlaySchema,
  type SyncConfig,
} from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { type FieldRule, isPrintable } from "../../pipeline/resource/rules.js";
import { isRepoName } from "../oci/repo-path.js";

/** How many entries any list or map of a repo holds at most. */
const MAX_ENTRIES = 1_000;
/** The largest request that makes or changes a repo, in bytes: an overlay, a readme and lists, in JSON. */
export const MAX_REPO_REQUEST = 1024 * 1024;
/** How long a name, a reference or an address is at most, in characters. */
const MAX_TEXT = 512;
/** How long a key, a certificate or the value of a variable is at most, in characters. */
const MAX_CONTENT = 64 * 1024;
/** How long the texts of a list are together at most, in characters: lists of repos and tags show all of them. */
const MAX_LIST = 32 * 1024;
/** How long the JSON of what is added to images is at most, in characters. */
const MAX_OVERLAY = 256 * 1024;
/** The largest id of a user or a group. */
const MAX_ID = 2 ** 31 - 1;

const TAG_NAME = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;
const ALIAS = /^[a-zA-Z0-9_.\-/]*[a-zA-Z0-9_.-]:[a-zA-Z0-9_.-]+$/;
const PEM = /-----BEGIN [A-Z0-9 ]+-----[^-]+-----END [A-Z0-9 ]+-----/;
const BUNDLES = ["application", "base", "byol", "ai", "ai-gpu", "featured", "fips", "commercial", "emeritoss"];
const RESERVED_VARIABLE = "CHAINGUARD_";
const RESERVED_ANNOTATIONS = ["dev.chainguard.", "org.opencontainers."];

/** The rule for names of repos: what a registry takes as the last part of a path. */
export const isRepoNameField: FieldRule = (value, field) =>
  typeof value === "string" && isRepoName(value)
    ? undefined
    : `${field} must match ^[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*$ and be at most 128 characters`;

/** The rule for tiers of the catalogue: one that the API knows. */
export const isTier: FieldRule = (value, field) =>
  CatalogTier[value as CatalogTier] === undefined ? `${field} must be a catalogue tier` : undefined;

/** The rule for the bundles of a repo: keywords of the catalogue. */
export const isBundles: FieldRule = (value, field) =>
  listFault(value, field, (one) => BUNDLES.includes(one), `must each be one of ${BUNDLES.join(", ")}`);

/** The rule for aliases: each a name, a colon and a tag. */
export const isAliases: FieldRule = (value, field) =>
  listFault(value, field, (one) => one.length <= MAX_TEXT && ALIAS.test(one), `must each match ${ALIAS.source}`);

/** Whether a tag may have this name (OCI distribution specification, "Pulling manifests"). */
export function isTagName(name: string): boolean {
  return TAG_NAME.test(name);
}

/** The rule for lists of tags. */
export const isTagNames: FieldRule = (value, field) =>
  listFault(value, field, isTagName, `must each match ${TAG_NAME.source}`);

/** The rule for the name of a tag. */
export const isTagNameField: FieldRule = (value, field) =>
  isTagName(String(value)) ? undefined : `${field} must match ${TAG_NAME.source}`;

/** The rule for labels: words of anybody's choosing. */
export const isLabels: FieldRule = (value, field) =>
  listFault(value, field, isWord, "must each be one line without control characters");

/** The rule for how a repo is copied. What its source may be is decided where that is looked up. */
export const isSyncConfig: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { source, google, amazon, azure } = value as SyncConfig;
  if (source === "") return `${field}.source is required`;
  const broken = Object.entries({ source, google, amazon, azure }).find(([, text]) => text !== "" && !isWord(text));
  return broken && `${field}.${broken[0]} must be one line of at most ${MAX_TEXT} characters`;
};

/** The rule for what is added to images. */
export const isOverlay: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const overlay = value as CustomOverlay;
  if (toJsonString(CustomOverlaySchema, overlay).length > MAX_OVERLAY)
    return `${field} must be at most ${MAX_OVERLAY} characters as JSON`;
  return (
    contentsFault(overlay.contents, `${field}.contents`) ??
    mapFault(overlay.environment, `${field}.environment`, (key) =>
      key.includes("=") || key.startsWith(RESERVED_VARIABLE)
        ? `must not have names that contain = or begin with ${RESERVED_VARIABLE}`
        : undefined,
    ) ??
    mapFault(overlay.annotations, `${field}.annotations`, (key) =>
      RESERVED_ANNOTATIONS.some((prefix) => key.startsWith(prefix))
        ? `must not have keys that begin with ${RESERVED_ANNOTATIONS.join(" or ")}`
        : undefined,
    ) ??
    accountsFault(overlay.accounts, `${field}.accounts`) ??
    certificatesFault(overlay.certificates, `${field}.certificates`)
  );
};

function contentsFault(contents: CustomOverlay["contents"], field: string): string | undefined {
  if (contents === undefined) return undefined;
  const { packages, runtimeRepositories, runtimeKeyring } = contents;
  return (
    listFault(packages, `${field}.packages`, isWord, "must each be the name of a package") ??
    listFault(runtimeRepositories, `${field}.runtimeRepositories`, isWebAddress, "must each be an http or https URL") ??
    filesFault(runtimeKeyring, `${field}.runtimeKeyring`, "a public key")
  );
}

function accountsFault(accounts: CustomOverlay["accounts"], field: string): string | undefined {
  if (accounts === undefined) return undefined;
  const { runAs, users, groups } = accounts;
  if (!isOptionalWord(runAs)) return `${field}.runAs must be one line of at most ${MAX_TEXT} characters`;
  const user = (one: (typeof users)[number]) =>
    isAccount(one.username) &&
    isAccountId(one.uid) &&
    isAccountId(one.gid) &&
    [one.groupName, one.shell, one.homeDir].every(isOptionalWord);
  const group = (one: (typeof groups)[number]) =>
    isAccount(one.groupname) && isAccountId(one.gid) && one.members.every(isAccount);
  return (
    entriesFault(users, `${field}.users`, user, `must each have a username and ids from 0 to ${MAX_ID}`) ??
    entriesFault(groups, `${field}.groups`, group, `must each have a groupname and an id from 0 to ${MAX_ID}`)
  );
}

function certificatesFault(certificates: CustomOverlay["certificates"], field: string): string | undefined {
  if (certificates === undefined) return undefined;
  const { additional, providers } = certificates;
  return (
    filesFault(additional, `${field}.additional`, "a certificate") ??
    listFault(providers, `${field}.providers`, isWord, "must each be the name of a package")
  );
}

// The names become those of files in a fixed directory.
function filesFault(files: readonly { name: string; content: string }[], field: string, what: string) {
  const good = ({ name, content }: { name: string; content: string }) =>
    isWord(name) && !/^\.|\//.test(name) && isContent(content) && PEM.test(content);
  return entriesFault(files, field, good, `must each have the name of a file and ${what} in PEM`);
}

function mapFault(
  map: Readonly<Record<string, string>>,
  field: string,
  refused: (key: string) => string | undefined,
): string | undefined {
  const entries = Object.entries(map);
  if (entries.length > MAX_ENTRIES) return `${field} must be at most ${MAX_ENTRIES}`;
  if (!entries.every(([key, value]) => isWord(key) && isContent(value))) return `${field} must map names to texts`;
  const rule = entries.map(([key]) => refused(key)).find((one) => one !== undefined);
  return rule && `${field} ${rule}`;
}

function listFault(value: unknown, field: string, good: (one: string) => boolean, rule: string): string | undefined {
  const texts = value as readonly string[];
  const fault = entriesFault(texts, field, good, rule);
  if (fault !== undefined) return fault;
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length > MAX_LIST ? `${field} must be at most ${MAX_LIST} characters together` : undefined;
}

function entriesFault<T>(all: readonly T[], field: string, good: (one: T) => boolean, rule: string) {
  if (all.length > MAX_ENTRIES) return `${field} must be at most ${MAX_ENTRIES}`;
  return all.every(good) ? undefined : `${field} ${rule}`;
}

function isWord(text: string): boolean {
  return text !== "" && isOptionalWord(text);
}

function isOptionalWord(text: string): boolean {
  return text.length <= MAX_TEXT && isPrintable(text);
}

// Fields of /etc/passwd and /etc/group are told apart by colons and commas.
function isAccount(name: string): boolean {
  return isWord(name) && !/[:,\s]/.test(name);
}

function isAccountId(id: number): boolean {
  return id >= 0 && id <= MAX_ID;
}

function isContent(text: string): boolean {
  return text.length <= MAX_CONTENT && isText(text);
}

/** Whether `text` can be stored and shown, in lines. */
export function isText(text: string): boolean {
  return isPrintable(text.replace(/[\t\r\n]/g, ""));
}

function isWebAddress(text: string): boolean {
  return isWord(text) && /^https?:\/\//.test(text) && URL.canParse(text);
}
