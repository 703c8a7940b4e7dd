// `arbor apply`: makes an organisation what a file says.

import { Code, CommandError, invalidFlag, NegativeAnswer } from "../../errors.js";
import { readFlagFileOrInput } from "../../flag-file.js";
import { confirm } from "../../output/confirm.js";
import type { CommonFlags } from "../flags.js";
import { type Session, withSession } from "../session.js";
import { type ActualState, type DesiredState, type KindName, kindNames, pathOf } from "./model.js";
import { parseState } from "./parse.js";
import { makePlan } from "./plan.js";
import { formatDone, formatPlan, planToJson } from "./print.js";
import { readActual, readPeople } from "./read.js";
import { runPlan } from "./run.js";

/** The flags of `arbor apply`. */
export interface ApplyFlags extends Omit<CommonFlags, "output"> {
  readonly file: string;
  /** The organisation, in place of that of the file. */
  readonly into?: string;
  readonly dryRun?: boolean;
  readonly prune?: boolean;
  readonly yes?: boolean;
  readonly output: "text" | "json";
}

/** The answer of `--dry-run` that there are differences. */
class Differences extends NegativeAnswer {
  override readonly exitCode = 2;
}

/** `arbor apply`. */
export async function applyFile({
  file,
  into,
  dryRun = false,
  prune = false,
  yes = false,
  output: format,
  ...flags
}: ApplyFlags) {
  const json = format === "json";
  const desired = parseState(file === "-" ? "standard input" : file, await readFlagFileOrInput("--file", file));
  const named = into ?? desired.organization;
  if (named === "") throw invalidFlag("--into", "is required, because the file has no organization");
  let differs = false;
  await withSession({ ...flags, output: "json" }, async (session) => {
    const { call, output } = session;
    const organization = await findOrganization(session, named);
    const actual = await read(session, organization, desired, prune);
    const plan = makePlan(desired, actual, { isPrune: prune, nowMs: Date.now() });
    const shown = `${JSON.stringify(planToJson(plan, actual), undefined, 2)}\n`;
    if (!json) await output.write(formatPlan(plan));
    else if (dryRun) await output.write(shown);
    differs = plan.changes.length > 0;
    if (dryRun) return;
    if (differs && !yes) {
      if (json) process.stderr.write(formatPlan(plan));
      await confirm(`Make these changes in ${actual.organization.name}?`);
    }
    await runPlan(call, plan, actual, async (change) => {
      if (!json) await output.write(formatDone(change));
    });
    if (json) await output.write(shown);
  });
  if (dryRun && differs) throw new Differences();
}

/** Finds the uid of an organisation. */
export async function findOrganization({ names }: Session, text: string): Promise<string> {
  const uid = await names.find(["group"], text);
  if (!uid.includes("/")) return uid;
  throw new CommandError(
    Code.InvalidArgument,
    `${text} is a group of an organisation: a file is of an organisation as a whole`,
  );
}

async function read(
  { call }: Session,
  organization: string,
  desired: DesiredState,
  isPrune: boolean,
): Promise<ActualState> {
  const conditional = new Set(
    desired.resources.filter(({ kind, values }) => kind === "identity" && values.conditions !== undefined).map(pathOf),
  );
  const actual = await readActual(call, organization, {
    kinds: isPrune ? new Set(kindNames) : findNeeded(desired),
    needsConditions: (path) => conditional.has(path),
    isPrune,
  });
  const isUnknown = desired.resources.some(
    ({ identity }) => identity?.text.includes("@") === true && !actual.people.has(identity.text),
  );
  // Somebody who is bound in another organisation of the caller has an address there.
  return isUnknown ? { ...actual, people: new Map([...(await readPeople(call)), ...actual.people]) } : actual;
}

// Role bindings refer to identities and roles.
function findNeeded({ sections }: DesiredState): ReadonlySet<KindName> {
  return sections.has("role binding") ? new Set([...sections, "identity", "role"]) : sections;
}
