// `arbor iam identities conditions` and `arbor iam guard`.
import { create, fromJson, type JsonObject, type JsonValue, type Message } from "@bufbuild/protobuf";
import { parse } from "yaml";
import {
  CheckIssuerGuardRequestSchema,
  type Condition,
  ConditionSchema,
  GetConditionsRequestSchema,
  GetIssuerGuardRequestSchema,
  type IssuerGuard,
  IssuerGuardSchema,
  RemoveIssuerGuardRequestSchema,
  SetConditionsRequestSchema,
  SetIssuerGuardRequestSchema,
  TrustService,
} from "#gen/arbor/trust/v1/trust_pb.js";
import { formatCondition } from "../../../kernel/claim-condition.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { invalidFlag } from "../../errors.js";
import { readFlagFileOrInput } from "../../flag-file.js";
import { confirm } from "../../output/confirm.js";
import { formatResponse } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { type CommonFlags, isTable } from "../flags.js";
import type { MethodCall } from "../method-call.js";
import { type Session, withSession } from "../session.js";
import { expandValues, NUMBER_RULE } from "./condition-values.js";

const methods = TrustService.method;
/** How many identities are named before the question. */
const MAX_NAMED = 20;

interface Flags extends CommonFlags {
  /** Whether to skip the confirmation. */
  readonly yes?: boolean;
}

export interface ConditionsFlags extends CommonFlags {
  readonly file: string;
}

export interface GuardFlags extends Flags {
  readonly issuer?: readonly string[];
  readonly origin?: readonly string[];
  readonly file?: string;
}

/** `arbor iam identities conditions get`. */
export async function printConditions(identity: string, flags: CommonFlags): Promise<void> {
  await withSession(flags, async (session) => {
    const response = await session.call(methods.getConditions, create(GetConditionsRequestSchema, { identity }));
    await write(session, flags, response, describeConditions(readConditions(response.conditions ?? [])));
  });
}

/** `arbor iam identities conditions set`. */
export async function setConditions(identity: string, { file, ...flags }: ConditionsFlags): Promise<void> {
  const value = parseFile(await readFlagFileOrInput("--file", file));
  const conditions = parseConditions(isJsonObject(value) ? value.conditions : value);
  await storeConditions(identity, conditions, flags);
}

/** `arbor iam identities conditions clear`. */
export async function clearConditions(identity: string, { yes = false, ...flags }: Flags): Promise<void> {
  if (!yes) await confirm(`Remove all conditions of identity ${identity}?`);
  await storeConditions(identity, [], flags);
}

async function storeConditions(identity: string, conditions: Condition[], flags: CommonFlags): Promise<void> {
  await withSession(flags, async (session) => {
    const request = create(SetConditionsRequestSchema, { identity, conditions });
    const response = await session.call(methods.setConditions, request);
    await write(session, flags, response, describeConditions(conditions));
  });
}

/** `arbor iam guard get`. */
export async function printGuard(group: string, flags: CommonFlags): Promise<void> {
  await withSession(flags, async (session) => {
    const response = await session.call(methods.getIssuerGuard, create(GetIssuerGuardRequestSchema, { group }));
    const { guard } = response;
    const text = guard === undefined ? "no issuer guard\n" : describeGuard(readGuard(guard));
    await write(session, flags, response, text);
  });
}

/** `arbor iam guard set`. */
export async function setGuard(group: string, { yes = false, ...flags }: GuardFlags): Promise<void> {
  const guard = await readGuardFlags(flags);
  await withSession(flags, async (session) => {
    const { call, names } = session;
    const uid = await names.find(["group"], group);
    const shutOut = await listShutOut(call, uid, guard);
    process.stderr.write(describeShutOut(shutOut));
    if (!yes) await confirm(`Set the issuer guard of ${group}?`);
    const response = await call(methods.setIssuerGuard, create(SetIssuerGuardRequestSchema, { group: uid, guard }));
    await write(session, flags, response, describeGuard(readGuard(response)));
  });
}

/** `arbor iam guard remove`. */
export async function removeGuard(group: string, { yes = false, ...flags }: Flags): Promise<void> {
  if (!yes) await confirm(`Remove the issuer guard of ${group}, so that its identities may trust any issuer?`);
  await withSession(flags, async (session) => {
    const request = create(RemoveIssuerGuardRequestSchema, { group });
    await write(session, flags, await session.call(methods.removeIssuerGuard, request), "removed the issuer guard\n");
  });
}

async function write({ output }: Session, { output: format }: CommonFlags, response: JsonObject, text: string) {
  await output.write(isTable(format) ? text : formatResponse(format, response, () => [], output.terminal));
}

async function listShutOut(call: MethodCall, group: string, guard: IssuerGuard): Promise<JsonObject[]> {
  const found: JsonObject[] = [];
  for (let pageToken = ""; ; ) {
    const request = create(CheckIssuerGuardRequestSchema, { group, guard, pageSize: 200, pageToken });
    const page = await call(methods.checkIssuerGuard, request as Message);
    found.push(...((page.identities ?? []) as JsonObject[]));
    pageToken = String(page.nextPageToken ?? "");
    if (pageToken === "") return found;
  }
}

const reasons: Readonly<Record<string, string>> = {
  REASON_ISSUER: "its issuer is not allowed",
  REASON_ISSUER_PATTERN: "it accepts issuers by a pattern: tokens of allowed ones still assume it",
  REASON_RELATIONSHIP: "such identities are not allowed",
};

function describeShutOut(shutOut: readonly JsonObject[]): string {
  if (shutOut.length === 0) return "the guard shuts no identity out\n";
  const lines = shutOut.slice(0, MAX_NAMED).map(({ uid, name, issuer, reason }) => {
    const from = issuer === undefined || issuer === "" ? "" : ` (${String(issuer)})`;
    return `  ${String(uid)} ${String(name)}${from}: ${reasons[String(reason)] ?? String(reason)}`;
  });
  const more = shutOut.length > MAX_NAMED ? [`  and ${shutOut.length - MAX_NAMED} more`] : [];
  const count = shutOut.length === 1 ? "1 identity" : `${shutOut.length} identities`;
  return `the guard shuts ${count} out:\n${[...lines, ...more].map((line) => `${escapeControls(line)}\n`).join("")}`;
}

function describeConditions(conditions: readonly Condition[]): string {
  if (conditions.length === 0) return "no conditions\n";
  return conditions.map((condition) => `${escapeControls(formatCondition(condition))}\n`).join("");
}

function describeGuard({ issuers, staticKeys, aws, servicePrincipals }: IssuerGuard): string {
  const kinds = { "static keys": staticKeys, AWS: aws, "service principals": servicePrincipals };
  const isAllowed = (allowed: boolean) =>
    Object.entries(kinds).flatMap(([name, value]) => ((value ?? true) === allowed ? [name] : []));
  const lines = issuers.map(({ allowed, conditions }) => {
    const what = `${allowed.case === "origin" ? "all issuers of" : "the issuer"} ${allowed.value}`;
    return conditions.length === 0 ? what : `${what}, where ${conditions.map(formatCondition).join(" and ")}`;
  });
  if (lines.length === 0) lines.push("no issuer");
  for (const kind of isAllowed(true)) lines.push(`${kind}`);
  const refused = isAllowed(false);
  const all = [...lines.map((line) => `allows ${line}`), ...refused.map((kind) => `does not allow ${kind}`)];
  return all.map((line) => `${escapeControls(line)}\n`).join("");
}

// From the responses of the service.

function readConditions(json: JsonValue): Condition[] {
  return (json as JsonValue[]).map((one) => fromJson(ConditionSchema, one, { ignoreUnknownFields: true }));
}

function readGuard(json: JsonValue): IssuerGuard {
  return fromJson(IssuerGuardSchema, json, { ignoreUnknownFields: true });
}

// From files, in which a value may be written as it is: `equals: 123`.

async function readGuardFlags({ issuer = [], origin = [], file }: GuardFlags): Promise<IssuerGuard> {
  const flagged = [...issuer.map((value) => ({ issuer: value })), ...origin.map((value) => ({ origin: value }))];
  if (file === undefined) {
    if (flagged.length === 0) throw invalidFlag("--file", "give --issuer, --origin or --file");
    return readGuard({ issuers: flagged });
  }
  if (flagged.length > 0) throw invalidFlag("--file", "give either --file, or --issuer and --origin");
  const value = parseFile(await readFlagFileOrInput("--file", file));
  if (!isJsonObject(value)) throw invalidFlag("--file", "must hold one issuer guard");
  const issuers = Array.isArray(value.issuers) ? value.issuers : [];
  const entries = issuers.map((one: unknown) =>
    isJsonObject(one) && Array.isArray(one.conditions) ? { ...one, conditions: one.conditions.map(expand) } : one,
  );
  return parseMessage(() => fromJson(IssuerGuardSchema, { ...value, issuers: entries } as JsonObject));
}

function parseConditions(value: unknown): Condition[] {
  if (!Array.isArray(value)) throw invalidFlag("--file", "must hold a list of conditions");
  return value.map((one) => parseMessage(() => fromJson(ConditionSchema, expand(one) as JsonValue)));
}

function parseFile(text: string): unknown {
  try {
    return parse(text);
  } catch {
    throw invalidFlag("--file", "must be YAML or JSON");
  }
}

function parseMessage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw invalidFlag("--file", `is not what the command takes: ${error instanceof Error ? error.message : ""}`);
  }
}

function expand(condition: unknown): unknown {
  return expandValues(condition, (value) => {
    throw invalidFlag("--file", `${value} ${NUMBER_RULE}`);
  });
}
