// `arbor export`: writes an organisation as a file for `arbor apply`.
import { create, type DescMessage, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import { Code, CommandError } from "../../errors.js";
import { escapeControls } from "../../output/terminal.js";
import type { CommonFlags } from "../flags.js";
import { getListMethod } from "../iam/resource-commands.js";
import { getKind, type Kind } from "../kinds.js";
import type { MethodCall } from "../method-call.js";
import { withSession } from "../session.js";
import { findOrganization } from "./apply.js";
import { buildFile, createNames, listExported } from "./build-file.js";
import { type Actual, type ActualState, kindNames, pathOf } from "./model.js";
import { readActual } from "./read.js";

/** The flags of `arbor export`. */
export interface ExportFlags extends Omit<CommonFlags, "output"> {
  readonly output: "yaml" | "json" | "terraform";
}

/** Kinds that a file cannot have, in words for several, with what to do. */
const otherKinds: readonly (readonly [kind: Kind, words: string])[] = [
  ["group invite", "invites: their codes are shown once"],
  ["identity provider", "identity providers: their secrets are never shown"],
  ["external group role mapping", "mappings of groups of directories"],
  ["account association", "account associations"],
  ["repo", "repos"],
];

/** `arbor export`. */
export async function exportOrganization(
  organisation: string,
  { output: format, ...flags }: ExportFlags,
): Promise<void> {
  await withSession({ ...flags, output: "json" }, async (session) => {
    const { call, output } = session;
    const uid = await findOrganization(session, organisation);
    const kindsRead = new Set(kindNames);
    const actual = await readActual(call, uid, { kinds: kindsRead, needsConditions: () => true, isPrune: false });
    assertNoNamesakes(actual);
    const notes = [...describeLeftOut(actual, Date.now()), ...(await countOthers(call, uid))];
    if (format === "terraform") {
      const { formatTerraform } = await import("./terraform.js");
      return output.write(formatTerraform(actual, notes, Date.now()));
    }
    const file = buildFile(actual);
    if (format === "json") {
      for (const note of notes) process.stderr.write(`arbor: not in the file: ${escapeControls(note)}\n`);
      return output.write(`${JSON.stringify(file, undefined, 2)}\n`);
    }
    await output.write(`${formatHeader(actual, notes)}${stringify(file, { lineWidth: 0 })}`);
  });
}

// A file names resources by their paths.
function assertNoNamesakes(actual: ActualState): void {
  const first = new Map<string, Actual>();
  const faults: string[] = [];
  for (const one of listExported(actual)) {
    if (one.kind === "role binding") continue;
    const key = `${one.kind} ${one.kind === "subscription" ? `${one.group} ${one.name}` : pathOf(one)}`;
    const other = first.get(key);
    if (other === undefined) first.set(key, one);
    else faults.push(`${key} is the name of several, with the uids ${other.uid} and ${one.uid}`);
  }
  if (faults.length === 0) return;
  throw new CommandError(Code.FailedPrecondition, [...faults, "rename or delete all but one of each"].join("\n"));
}

// What of the resources themselves the file cannot say.
function describeLeftOut(actual: ActualState, nowMs: number): string[] {
  const names = createNames(actual);
  const { resources } = actual;
  const bindings = resources.filter(({ kind }) => kind === "role binding");
  const count = (found: readonly Actual[], words: string) =>
    found.length === 0 ? [] : [formatCount(words, found.length)];
  const of = (kind: Actual["kind"], managedBy: Actual["managedBy"]) =>
    resources.filter((one) => one.kind === kind && one.managedBy === managedBy);
  const ofPeople = bindings.filter(
    ({ managedBy, identityUid = "" }) => managedBy === undefined && !identityUid.includes("/"),
  );
  const expired = of("identity", undefined).filter(({ values }) => {
    const { expirationTime } = (values.staticKeys ?? {}) as JsonObject;
    return typeof expirationTime === "string" && Date.parse(expirationTime) <= nowMs;
  });
  return [
    ...count(of("identity", "arbor auth pull-tokens"), "pull tokens: their passwords are shown once"),
    ...count(of("role binding", "a directory, by SCIM"), "role bindings that a directory manages by SCIM"),
    ...count(of("role binding", "the operator of the service"), "role bindings of roles that the operator grants"),
    ...count(
      ofPeople.filter((one) => names.identity(one).includes("@")),
      "role bindings of people by address: elsewhere, those are found who have joined an organisation of yours there",
    ),
    ...count(
      ofPeople.filter((one) => !names.identity(one).includes("@")),
      "the uids of role bindings of people whose addresses are not shown: they are in this file, and another service does not know them",
    ),
    ...count(expired, "the expired keys of identities: they are in this file, and elsewhere need a new expirationTime"),
  ];
}

/** Formats how many there are of what the words before a colon say. */
function formatCount(words: string, count: number): string {
  const [what, ...rest] = words.split(": ");
  return [`${what} (${count})`, ...rest].join(": ");
}

async function countOthers(call: MethodCall, organization: string): Promise<string[]> {
  const found: string[] = [];
  for (const [kind, words] of otherKinds) {
    const method = getListMethod(await getKind(kind).load());
    const init = { uidp: { descendantsOf: organization }, pageSize: 1 };
    const request = create<DescMessage>(method.input, init as MessageInitShape<DescMessage>);
    try {
      const total = Number((await call(method, request)).totalCount ?? 0);
      if (total > 0) found.push(formatCount(words, total));
    } catch (error) {
      if (!(error instanceof CommandError) || error.code !== Code.PermissionDenied) throw error;
      found.push(`${words}, if there are any: you may not list them`);
    }
  }
  return found;
}

function formatHeader({ organization: { name } }: ActualState, notes: readonly string[]): string {
  const lines = [
    `The organisation ${name}, as arbor export has written it; arbor apply -f FILE makes it so again.`,
    "Paths begin at the organisation. What is not in this file, or not the same elsewhere:",
    ...["uids and times, which each resource gets anew", ...notes].map((note) => `  - ${note}`),
  ];
  return lines.map((line) => `# ${escapeControls(line)}\n`).join("");
}
