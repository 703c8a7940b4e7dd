// How a plan is shown: a line for each change, or JSON for programs.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { escapeControls } from "../../output/terminal.js";
import type { ActualState, Change, FieldChange, Plan } from "./model.js";

const signs: Readonly<Record<Change["action"], string>> = { create: "+", update: "~", delete: "-" };
const done: Readonly<Record<Change["action"], string>> = { create: "created", update: "changed", delete: "deleted" };

/** Formats a plan for people. */
export function formatPlan({ changes, kept, notes, unchanged }: Plan): string {
  const lines = changes.flatMap((change) => [
    `${signs[change.action]} ${change.kind} ${change.label}`,
    ...listFields(change).map((field) => `    ${formatField(field)}`),
  ]);
  for (const { kind, label, uid, reason } of kept) lines.push(`  keeps ${kind} ${label} (${uid}): ${reason}`);
  for (const note of notes) lines.push(`  ${note}`);
  const isEmpty = changes.length === 0;
  const same = `${unchanged} ${unchanged === 1 ? "resource is" : "resources are"} as the file says`;
  const summary = isEmpty ? `nothing to change: ${same}` : `${count(changes)}; ${same}`;
  if (lines.length > 0) lines.push("");
  return `${[...lines, summary].map(escapeControls).join("\n")}\n`;
}

/** Counts the changes of a plan in words. */
function count(changes: readonly Change[]): string {
  const of = (action: Change["action"]) => changes.filter((one) => one.action === action).length;
  return `${of("create")} to create, ${of("update")} to change, ${of("delete")} to delete`;
}

/** Formats a change that was made. */
export function formatDone({ action, kind, label }: Change): string {
  return `${escapeControls(`${done[action]} ${kind} ${label}`)}\n`;
}

// What is new is shown without what it does not have.
function listFields(change: Change): readonly FieldChange[] {
  if (change.action === "delete") return [];
  if (change.action === "update") return change.fields.flatMap(flatten);
  return Object.entries(change.desired.values)
    .filter(([, value]) => !isEmpty(value))
    .flatMap(([field, after]) => flatten({ field, after }));
}

function isEmpty(value: JsonValue): boolean {
  return value === "" || value === null || (Array.isArray(value) && value.length === 0);
}

/** The members of an object that differ, each with its path. */
function flatten({ field, before, after }: FieldChange): FieldChange[] {
  if (!isObject(after) || (before !== undefined && !isObject(before)))
    return [{ field, ...(before !== undefined && { before }), after }];
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after)]);
  return [...names].sort().flatMap((name) => {
    const [old, next] = [before?.[name], after[name]];
    if (JSON.stringify(old) === JSON.stringify(next)) return [];
    return flatten({ field: `${field}.${name}`, ...(old !== undefined && { before: old }), after: next ?? null });
  });
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function formatField({ field, before, after }: FieldChange): string {
  return before === undefined
    ? `${field}: ${JSON.stringify(after)}`
    : `${field}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`;
}

/** Converts a plan to JSON. */
export function planToJson({ changes, kept, notes, unchanged }: Plan, { organization }: ActualState): JsonObject {
  return {
    organization,
    changes: changes.map((change) => ({
      action: change.action,
      kind: change.kind,
      name: change.label,
      ...(change.action !== "create" && { uid: change.actual.uid }),
      fields: listFields(change).map(({ field, before, after }) => ({ field, before: before ?? null, after })),
    })),
    kept: kept.map(({ kind, label, uid, reason }) => ({ kind, name: label, uid, reason })),
    notes: [...notes],
    unchanged,
  };
}
