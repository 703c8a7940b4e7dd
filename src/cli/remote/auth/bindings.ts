// `arbor auth bindings`: the roles of the caller in groups, and the pending ones that the caller has not accepted.
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  AcceptBindingRequestSchema,
  BindingSchema,
  BindingsService,
  DropBindingRequestSchema,
  ListBindingsRequestSchema,
} from "#gen/arbor/bindings/v1/bindings_pb.js";
import { confirmDelete } from "../../output/confirm.js";
import { describeRow, formatNamed } from "../../output/describe.js";
import { createListFormatter, formatResponse, type ListColumn } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { type CommonFlags, isTable } from "../flags.js";
import { createColumn } from "../iam/columns.js";
import { type ColumnFlags, selectColumns } from "../iam/select-columns.js";
import { type MethodCall, readRows } from "../method-call.js";
import { withSession } from "../session.js";

/** The flags of `arbor auth bindings list`. */
export interface ListFlags extends CommonFlags, ColumnFlags {
  /** Whether to list only those that are pending, or only those that are not. */
  readonly pending?: boolean;
}

const PAGE_SIZE = 200;
const { listBindings, acceptBinding, dropBinding } = BindingsService.method;

/** The columns of the list. */
export const columns: readonly ListColumn[] = [
  { title: "GROUP", cell: (row) => nameOf(row.group) },
  { title: "ORGANIZATION", cell: (row) => nameOf(row.organization) },
  { title: "ROLE", cell: (row) => nameOf(row.role) },
  { title: "PENDING", path: "pending", cell: (row) => (row.pending === true ? "yes" : "no") },
  createColumn("CREATED", "createTime"),
  createColumn("UID", "uid"),
];

/** `arbor auth bindings list`: the pending bindings, then all others. */
export async function listOwnBindings({ pending: only, ...flags }: ListFlags): Promise<void> {
  const shown = selectColumns(BindingSchema, columns, flags);
  await withSession(flags, async ({ call, output }) => {
    const list = createListFormatter(flags.output, "bindings", shown, output.terminal);
    // At once, so that all are aligned: one person has few.
    const rows: JsonObject[] = [];
    for (const pending of only === undefined ? [true, false] : [only]) {
      const request = create(ListBindingsRequestSchema, { pending, pageSize: PAGE_SIZE });
      for await (const row of readRows(call, listBindings, request)) rows.push(row);
    }
    await output.write(list.page(rows) + list.end({}));
  });
}

/** `arbor auth bindings accept`. */
export async function acceptOwnBinding(uid: string, flags: CommonFlags): Promise<void> {
  await withSession(flags, async ({ call, output }) => {
    const response = await call(acceptBinding, create(AcceptBindingRequestSchema, { uid }));
    const rows = () => columns.map(({ title, cell }) => [title, cell(response)] as const);
    await output.write(formatResponse(flags.output, response, rows, output.terminal));
  });
}

/** The flags of `arbor auth bindings drop`. */
export interface DropFlags extends CommonFlags {
  /** Whether to skip the confirmation. */
  readonly yes?: boolean;
}

/** `arbor auth bindings drop`. */
export async function dropOwnBinding(uid: string, { yes = false, ...flags }: DropFlags): Promise<void> {
  await withSession(flags, async ({ call, output }) => {
    if (!yes) await confirmDelete(formatNamed("binding", await describeOwn(call, uid), uid));
    const response = await call(dropBinding, create(DropBindingRequestSchema, { uid }));
    const empty = formatResponse(flags.output, response, () => [], output.terminal);
    await output.write(isTable(flags.output) ? `dropped ${escapeControls(uid)}\n` : empty);
  });
}

// No method gets one binding of the caller, who has few.
async function describeOwn(call: MethodCall, uid: string): Promise<string> {
  for (const pending of [false, true]) {
    const request = create(ListBindingsRequestSchema, { pending, pageSize: PAGE_SIZE });
    for await (const row of readRows(call, listBindings, request)) if (row.uid === uid) return describeRow(row);
  }
  return "";
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function nameOf(value: unknown): string {
  const { name, uid } = (value ?? {}) as JsonObject;
  return text(name) || text(uid);
}
