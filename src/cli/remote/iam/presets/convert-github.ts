// `arbor iam identities convert-github`: identities that know a repository of GitHub by its name alone, which can be given up and
// taken by others, get conditions on the ids of repository and owner.
import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import {
  type Condition,
  ConditionSchema,
  IdentityConditionsSchema,
  SetConditionsRequestSchema,
  TrustService,
} from "#gen/arbor/trust/v1/trust_pb.js";
import {
  IdentitiesService,
  type Identity_ClaimMatch,
  Identity_ClaimMatchSchema,
  ListIdentitiesRequestSchema,
  RelationshipType,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { isJsonObject } from "../../../../kernel/strict-json.js";
import { Code, CommandError, invalidFlag } from "../../../errors.js";
import { readFlagFileOrInput } from "../../../flag-file.js";
import { confirm } from "../../../output/confirm.js";
import { formatNamed } from "../../../output/describe.js";
import { createListFormatter } from "../../../output/format.js";
import type { CommonFlags } from "../../flags.js";
import { type MethodCall, readRows } from "../../method-call.js";
import { withSession } from "../../session.js";
import { createColumn } from "../columns.js";
import {
  bindToIds,
  fetchRepository,
  findGitHub,
  GITHUB,
  type GitHub,
  type Repository,
  readRepository,
} from "./github.js";
import { readAddress } from "./preset.js";

/** The flags. */
export interface ConvertFlags extends CommonFlags {
  readonly group?: string;
  readonly githubUrl?: string;
  readonly repositoriesFile?: string;
  /** Whether to change nothing. */
  readonly dryRun?: boolean;
  /** Whether to skip the confirmation. */
  readonly yes?: boolean;
}

/** A repository, or why none was found. */
type Found = Repository | string;

const { getConditions, setConditions } = TrustService.method;
const PAGE_SIZE = 200;
const NO_REPOSITORY = "its claim match names no single repository";

/** The columns of the list. */
export const columns = [
  createColumn("NAME", "name"),
  createColumn("REPOSITORY", "repository"),
  createColumn("PROBLEM", "problem", "prose"),
  createColumn("REPOSITORY ID", "repositoryId"),
  createColumn("OWNER ID", "ownerId"),
  createColumn("UID", "uid"),
];

/**
 * `arbor iam identities convert-github`: lists the identities, asks, and adds the conditions.
 *
 * @throws CommandError the first error of a change, after all others; the error of GitHub when it accepts no more requests
 */
export async function convertIdentities({ dryRun = false, yes = false, ...flags }: ConvertFlags): Promise<void> {
  const address = flags.githubUrl === undefined ? {} : { "github-url": flags.githubUrl };
  const github = findGitHub(readAddress(address, "github-url", GITHUB));
  const find = createFinder(github, await readRepositories(flags.repositoriesFile));
  await withSession(flags, async ({ call, output }) => {
    const list = createListFormatter(flags.output, "identities", columns, output.terminal);
    const plan: Conversion[] = [];
    for await (const row of listIdentities(call, flags.group))
      plan.push(...(await planConversion(call, row, github, find)));
    await output.write(list.page(plan.map(toRow)) + list.end({}));
    const found = plan.filter(isPossible);
    if (dryRun || found.length === 0) return;
    const count = found.length === 1 ? "1 identity" : `${found.length} identities`;
    if (!yes) await confirm(`Add conditions on these ids to ${count}?`);
    await addAllConditions(call, found);
    process.stderr.write(`arbor: added conditions to ${count}\n`);
  });
}

/** An identity that names a repository without an id. */
interface Conversion {
  readonly row: { readonly uid: string; readonly name: string; readonly repository: string };
  readonly found: Found;
}

/** A conversion whose repository was found. */
interface PossibleConversion extends Conversion {
  readonly found: Repository;
}

function isPossible(conversion: Conversion): conversion is PossibleConversion {
  return typeof conversion.found !== "string";
}

function toRow({ row, found }: Conversion): JsonObject {
  return typeof found === "string"
    ? { ...row, problem: found }
    : { ...row, repositoryId: found.id, ownerId: found.ownerId, problem: "" };
}

/** Plans the conversion of an identity; empty if it needs none. */
async function planConversion(
  call: MethodCall,
  { uid: text, name: label, claimMatch }: JsonObject,
  github: GitHub,
  find: (name: string) => Promise<Found>,
): Promise<Conversion[]> {
  const match = fromJson(Identity_ClaimMatchSchema, claimMatch ?? {}, { ignoreUnknownFields: true });
  if (!isOfGitHub(match, github) || hasIds(match)) return [];
  const uid = String(text);
  if ((await readConditions(call, uid)).some(isOnId)) return [];
  const repository = findRepositoryName(match);
  const found = repository === undefined ? NO_REPOSITORY : await find(repository);
  return [{ row: { uid, name: String(label ?? ""), repository: repository ?? "" }, found }];
}

async function* listIdentities(call: MethodCall, group: string | undefined): AsyncGenerator<JsonObject> {
  const request = create(ListIdentitiesRequestSchema, {
    ...(group !== undefined && { uidp: { descendantsOf: group } }),
    ...{ relationshipType: RelationshipType.CLAIM_MATCH, pageSize: PAGE_SIZE },
  });
  yield* readRows(call, IdentitiesService.method.listIdentities, request);
}

async function readConditions(call: MethodCall, identity: string): Promise<readonly Condition[]> {
  const json = await call(getConditions, create(getConditions.input, { identity }));
  return fromJson(IdentityConditionsSchema, json).conditions;
}

/**
 * Adds the conditions to all identities but those that cannot be changed.
 *
 * @throws CommandError the first error
 */
async function addAllConditions(call: MethodCall, plan: readonly PossibleConversion[]): Promise<void> {
  let failure: CommandError | undefined;
  for (const { row, found } of plan) {
    const { uid, name } = row;
    const added = bindToIds(found).map((condition) => create(ConditionSchema, condition));
    try {
      // The call replaces those that the identity has, which may be others than before the question.
      const conditions = [...(await readConditions(call, uid)), ...added];
      await call(setConditions, create(SetConditionsRequestSchema, { identity: uid, conditions }));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      failure ??= new CommandError(error.code, `${formatNamed("identity", name, uid)}: ${error.message}`, error);
    }
  }
  if (failure !== undefined) throw failure;
}

function isOnId({ path, negated, test }: Condition): boolean {
  return !negated && path.length === 1 && path[0] === "repository_id" && ["equals", "oneOf"].includes(test.case ?? "");
}

function firstLineOf({ message }: CommandError): string {
  return message.split("\n")[0] ?? "";
}

// What claim matches say

// An enterprise may have an issuer of its own below that of GitHub.
function isOfGitHub({ iss }: Identity_ClaimMatch, { issuer }: GitHub): boolean {
  const text = iss.case === "issuerPattern" ? readLiteral(iss.value) : (iss.value ?? "");
  return text === issuer || text.startsWith(`${issuer}/`);
}

function hasIds({ sub, claims }: Identity_ClaimMatch): boolean {
  return claims.repository_id !== undefined || /^\^?repo:[^|]*?@\d+\/[^|]*?@\d+:/.test(sub.value ?? "");
}

/** Finds the repository that a claim match names; undefined for none and for several. */
export function findRepositoryName({ sub, claims }: Pick<Identity_ClaimMatch, "sub" | "claims">): string | undefined {
  const text = sub.case === "subjectPattern" ? readLiteral(sub.value) : (sub.value ?? "");
  const [, ofSubject] = /^repo:([\w-]+\/[\w.-]+):/.exec(text) ?? [];
  const { repository: ofClaim } = claims;
  if (ofSubject === undefined || ofClaim === undefined || ofSubject === ofClaim) return ofSubject ?? ofClaim;
  return undefined;
}

const OPTIONAL_ID = /\(@\d+\)\?/g;

/**
 * Reads the text that every match of a pattern begins with, but for ids that may be missing. A dot is taken for itself, as it is
 * meant in the name of a repository.
 *
 * @returns the empty text for a pattern of several alternatives
 */
function readLiteral(pattern: string): string {
  const rest = pattern.replace(OPTIONAL_ID, "").replace(/^\^/, "");
  if (hasAlternatives(rest)) return "";
  let literal = "";
  for (const [token, escaped, plain] of rest.matchAll(/\\([^\w\s])(?![*+?{])|([\w:/@.-])(?![*+?{])|./gs)) {
    const text = escaped ?? plain;
    if (token === undefined || text === undefined) break;
    literal += text;
  }
  return literal;
}

function hasAlternatives(pattern: string): boolean {
  let depth = 0;
  for (const [token] of pattern.matchAll(/\\.|\[(?:\\.|[^\]])*\]|./gs)) {
    if (token === "(") depth++;
    else if (token === ")") depth--;
    else if (token === "|" && depth === 0) return true;
  }
  return false;
}

// What repositories are called, and their ids

/** Creates what finds a repository in those of a file, and asks GitHub for others, once for each. */
function createFinder(github: GitHub, known: ReadonlyMap<string, Repository>): (name: string) => Promise<Found> {
  const asked = new Map<string, Promise<Found>>();
  const ask = async (name: string): Promise<Found> => {
    try {
      return await fetchRepository(github, name, "--repositories-file FILE gives the ids of private repositories");
    } catch (error) {
      // All others would fail as well.
      if (!(error instanceof CommandError) || error.code !== Code.NotFound) throw error;
      return firstLineOf(error);
    }
  };
  return async (name) => {
    const key = name.toLowerCase();
    const found = asked.get(key) ?? Promise.resolve(known.get(key) ?? ask(name));
    asked.set(key, found);
    return found;
  };
}

async function readRepositories(file: string | undefined): Promise<ReadonlyMap<string, Repository>> {
  if (file === undefined) return new Map();
  const flag = "--repositories-file";
  const rows = parseRows(await readFlagFileOrInput(flag, file));
  const rule = "must have repositories with full_name, id and owner.id, as a JSON array or an object a line";
  if (rows === undefined) throw invalidFlag(flag, rule);
  return new Map(
    rows.map((row) => {
      if (typeof row.full_name !== "string") throw invalidFlag(flag, rule);
      try {
        return [row.full_name.toLowerCase(), readRepository(row, row.full_name)] as const;
      } catch {
        throw invalidFlag(flag, rule);
      }
    }),
  );
}

function parseRows(text: string): readonly JsonObject[] | undefined {
  const parse = (json: string): unknown => {
    try {
      return JSON.parse(json);
    } catch {
      return undefined;
    }
  };
  const whole = parse(text);
  const rows =
    whole === undefined
      ? text
          .split("\n")
          .filter((line) => line.trim() !== "")
          .map(parse)
      : [whole].flat();
  return rows.every(isJsonObject) ? (rows as readonly JsonObject[]) : undefined;
}
