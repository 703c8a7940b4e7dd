// `arbor auth bindings`: the roles that the caller has in groups, and those that
// somebody gave it and that it has yet to accept.
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  AcceptBindingRequestSchema,
  BindingsService,
  DropBindingRequestSchema,
  ListBindingsRequestSchema,
} from "#gen/arbor/bindings/v1/bindings_pb.js";
import { answerText, type ListColumn, listText } from "../../output/format.js";
import { printable } from "../../printable.js";
import { confirmDelete } from "../iam/confirm.js";
import { type CommonFlags, withSession } from "../iam/session.js";

/** The flags of `arbor auth bindings list`. */
export interface ListFlags extends CommonFlags {
  /** Only those that are pending. */
  readonly pending?: boolean;
}

const PAGE_SIZE = 200;
const { listBindings, acceptBinding, dropBinding } = BindingsService.method;

const columns: readonly ListColumn[] = [
  { title: "UID", cell: (row) => text(row.uid) },
  { title: "ORGANIZATION", cell: (row) => named(row.organization) },
  { title: "GROUP", cell: (row) => named(row.group) },
  { title: "ROLE", cell: (row) => named(row.role) },
  { title: "PENDING", cell: (row) => (row.pending === true ? "yes" : "no") },
  { title: "CREATED", cell: (row) => text(row.createTime) },
];

/** `arbor auth bindings list`: those that are pending, and unless only they are asked for all others. */
export async function listOwnBindings({ pending: onlyPending = false, ...flags }: ListFlags): Promise<void> {
  await withSession(flags, async ({ call, output }) => {
    const list = listText(flags.output, "bindings", columns, output.terminal);
    for (const pending of onlyPending ? [true] : [true, false]) {
      let pageToken = "";
      do {
        const request = create(ListBindingsRequestSchema, { pending, pageSize: PAGE_SIZE, pageToken });
        const answer = await call(listBindings, request);
        await output.write(list.page((answer.bindings ?? []) as JsonObject[]));
        pageToken = text(answer.nextPageToken);
      } while (pageToken !== "");
    }
    await output.write(list.end({}));
  });
}

/** `arbor auth bindings accept`. */
export async function acceptOwnBinding(uid: string, flags: CommonFlags): Promise<void> {
  await withSession(flags, async ({ call, output }) => {
    const answer = await call(acceptBinding, create(AcceptBindingRequestSchema, { uid }));
    const rows = () => columns.map(({ title, cell }) => [title, cell(answer)] as const);
    await output.write(answerText(flags.output, answer, rows, output.terminal));
  });
}

/** The flags of `arbor auth bindings drop`. */
export interface DropFlags extends CommonFlags {
  /** Do not ask. */
  readonly yes?: boolean;
}

/**
 * `arbor auth bindings drop`.
 *
 * @throws ApiError INVALID_ARGUMENT without `--yes` where nobody can be asked; CommandFailure when the
 * service refuses.
 */
export async function dropOwnBinding(uid: string, { yes = false, ...flags }: DropFlags): Promise<void> {
  if (!yes) await confirmDelete(`binding ${uid}`);
  await withSession(flags, async ({ call, output }) => {
    const answer = await call(dropBinding, create(DropBindingRequestSchema, { uid }));
    const empty = answerText(flags.output, answer, () => [], output.terminal);
    await output.write(flags.output === "table" ? `dropped ${printable(uid)}\n` : empty);
  });
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function named(value: unknown): string {
  const { name, uid } = (value ?? {}) as JsonObject;
  return text(name) || text(uid);
}
