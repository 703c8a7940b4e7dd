// The lists of `arbor access`, and `arbor find`.
import type { DescMethodUnary, JsonObject, Message } from "@bufbuild/protobuf";
import {
  AccessService,
  type FindRequest,
  FoundKindSchema,
  type ListAccessRequest,
  type ListSubjectsRequest,
  MatchSchema,
  NamedKindSchema,
  type SearchNamesRequest,
} from "#gen/arbor/access/v1/access_pb.js";
import type { ListColumn } from "../../output/format.js";
import { createColumn } from "../iam/columns.js";
import type { FieldFlag } from "../iam/field-flags.js";
import { type ListFlags, printPages } from "../iam/pages.js";
import { buildRequest } from "../iam/request.js";
import { getRowsField } from "../iam/resource-commands.js";
import { selectColumns } from "../iam/select-columns.js";
import { type Session, withSession } from "../session.js";
import { createGrantColumns, formatGrant, formatWords } from "./grants.js";
import { listNotes } from "./notes.js";
import { checkPlace, findPlace, type PlaceFlags, parseActions, toRequestedIdentity } from "./question.js";
import { describeSubject } from "./subjects.js";

/** The columns of the list. */
export const subjectColumns: readonly ListColumn[] = [
  { title: "NAME", cell: (row) => describeSubject(row).name },
  { title: "E-MAIL", cell: (row) => describeSubject(row).email },
  { title: "KIND", cell: (row) => describeSubject(row).kind },
  {
    title: "BY",
    path: "grants",
    kind: "prose",
    cell: ({ grants }) => ((grants ?? []) as JsonObject[]).map(formatGrant).join(", "),
  },
  { title: "UNCONFIRMED", cell: (row) => (describeSubject(row).isUnconfirmed ? "yes" : "") },
  { title: "UID", kind: "uid", cell: (row) => describeSubject(row).uid },
];

/** The columns of the list. */
export const nameColumns: readonly ListColumn[] = [
  createColumn("NAME", "name"),
  { ...createColumn("KIND", "kind"), cell: ({ kind }) => formatWords(NamedKindSchema, kind) },
  createColumn("GROUP", "group", "uid"),
  createColumn("UID", "uid"),
];

/** The columns of the list. */
export const foundColumns: readonly ListColumn[] = [
  createColumn("NAME", "name"),
  { ...createColumn("KIND", "kind"), cell: ({ kind }) => formatWords(FoundKindSchema, kind) },
  { title: "WHERE", path: "path", cell: ({ path }) => ((path ?? []) as string[]).join("/") },
  createColumn("DETAIL", "detail", "prose"),
  { ...createColumn("MATCH", "match"), cell: ({ match }) => formatWords(MatchSchema, match) },
  createColumn("UID", "uid"),
];

const { find, listAccess, listSubjects, searchNames } = AccessService.method;

/**
 * `arbor access list`.
 *
 * @param named the identity; the caller unless given
 */
export async function listGrants(
  named: string | undefined,
  flags: readonly FieldFlag[],
  given: ListFlags,
): Promise<void> {
  const columns = createGrantColumns("counted");
  await printList({ method: listAccess, columns }, flags, given, async (request: ListAccessRequest) => {
    request.identity = toRequestedIdentity(named ?? "");
  });
}

/**
 * `arbor access subjects`.
 *
 * @param what a method or capabilities
 */
export async function listWhoCan(
  what: string,
  flags: readonly FieldFlag[],
  given: ListFlags & PlaceFlags,
): Promise<void> {
  const actions = parseActions(what);
  checkPlace(given, true);
  const view = { method: listSubjects, columns: subjectColumns };
  await printList(view, flags, given, async (request: ListSubjectsRequest, session) => {
    request.actions = actions;
    request.resource = await findPlace(session, given);
  });
}

/** `arbor access search`. */
export async function searchByName(prefix: string, flags: readonly FieldFlag[], given: ListFlags): Promise<void> {
  const view = { method: searchNames, columns: nameColumns };
  await printList(view, flags, given, async (request: SearchNamesRequest) => {
    request.prefix = prefix;
  });
}

/** `arbor find`. */
export async function findByText(text: string, flags: readonly FieldFlag[], given: ListFlags): Promise<void> {
  await printList({ method: find, columns: foundColumns }, flags, given, async (request: FindRequest) => {
    request.query = text;
  });
}

/**
 * Prints a list.
 *
 * @param complete sets what no flag of a field does
 */
async function printList<Request extends Message>(
  { method, columns }: { readonly method: DescMethodUnary; readonly columns: readonly ListColumn[] },
  flags: readonly FieldFlag[],
  given: ListFlags,
  complete: (request: Request, session: Session) => Promise<void>,
): Promise<void> {
  const { request } = await buildRequest(method.input, flags, given, undefined);
  const chosen = selectColumns(getRowsField(method).message, columns, given);
  await withSession(given, async (session) => {
    await complete(request as Request, session);
    const view = { method, columns: chosen, mayBeShort: true, notes: listNotes } as const;
    await printPages(view, request, given, session);
  });
}
