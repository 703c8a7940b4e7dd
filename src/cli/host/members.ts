// `arbor admin organisations` and `arbor admin identities`, also while servers run; and what `arbor bootstrap` says.
import type { JsonObject } from "@bufbuild/protobuf";
import type { Settings } from "../../config/config.js";
import {
  findOrganisations,
  listMembers,
  listOrganisations,
  type Member,
  type MemberPage,
  type Organisation,
  resolveOrganisation,
} from "../../iam/operator/members.js";
import { isUidp } from "../../kernel/uidp.js";
import type { Tx } from "../../store/transaction.js";
import { invalidFlag } from "../errors.js";
import type { ListColumn } from "../output/format.js";
import { escapeControls } from "../output/terminal.js";
import { formatTime } from "../output/time.js";
import { createColumn } from "../remote/iam/columns.js";
import { withInstallation } from "./host.js";
import { type HostListFlags, printRows } from "./list.js";

const MAX_ROWS = 1_000;

interface PageOptions extends HostListFlags {
  readonly pageSize: string;
  readonly pageToken: string;
}

/** `arbor admin organisations list` */
export async function organisationListCommand(settings: Settings, options: PageOptions): Promise<void> {
  const page = parsePage(options);
  await withInstallation(settings, "read", async ({ store }) => {
    const listed = await store.read((tx) => listOrganisations(tx, page));
    printRows(listed.map(organisationToJson), organisationColumns, options);
    notePage(
      listed.map(({ row }) => row.uid),
      page,
    );
  });
}

/** `arbor admin identities list` */
export async function identityListCommand(settings: Settings, options: PageOptions & { org: string }): Promise<void> {
  const page = parsePage(options);
  await withInstallation(settings, "read", async ({ store }) => {
    const listed = await store.read(async (tx) => listMembers(tx, await resolveOrganisation(tx, options.org), page));
    printRows(listed.map(memberToJson), memberColumns, options);
    notePage(
      listed.map(({ uid }) => uid),
      page,
    );
  });
}

/**
 * Describes the organisations that have a name already, so that whoever lost the output of `arbor bootstrap` knows how to
 * go on.
 *
 * @param flags the flags that the command was given for the installation
 */
export async function describeExisting(tx: Tx, org: string, flags: string): Promise<string[]> {
  const found = await findOrganisations(tx, org);
  const lines = found.flatMap(({ row, owners }) => [
    `organisation ${row.name} is the group ${row.uid}`,
    ...owners.map(
      (owner) =>
        `  owner ${describeMember(memberToJson(owner))}; its token: arbor admin token --identity ${owner.uid}${flags}`,
    ),
    `  its identities: arbor admin identities list --org ${row.uid}${flags}`,
  ]);
  return lines.map(escapeControls);
}

function parsePage({ pageSize, pageToken: after }: PageOptions): MemberPage {
  const rows = /^[0-9]{1,4}$/.test(pageSize) ? Number(pageSize) : 0;
  if (rows < 1 || rows > MAX_ROWS) throw invalidFlag("--page-size", `must be 1 to ${MAX_ROWS}`);
  if (after !== "" && !isUidp(after)) throw invalidFlag("--page-token", "must be a uid");
  return { after, limit: rows };
}

// Says where the next page begins.
function notePage(uids: readonly string[], { limit }: MemberPage): void {
  if (uids.length === limit) process.stderr.write(`arbor: there may be more: --page-token ${uids.at(-1)}\n`);
}

function organisationToJson({ row, owners }: Organisation) {
  const { uid, name, verified } = row;
  return { uid, name, verified, createTime: formatTime(row.createTimeMs), owners: owners.map(memberToJson) };
}

function memberToJson({ uid, kind, row, grants }: Member) {
  return {
    ...{ uid, kind, name: row?.name ?? "" },
    ...{ email: row?.email ?? "", emailUnverified: row?.emailUnverified ?? "" },
    ...{ issuer: row?.issuer ?? "", subject: row?.subject ?? "" },
    lastSeenTime: wasSeen(row, kind) ? formatTime(row.lastSeenTimeMs) : null,
    roles: grants.map(({ groupUid, roleUid, roleName }) => ({ groupUid, roleUid, roleName })),
  };
}

/** The columns of `arbor admin organisations list`. */
export const organisationColumns: readonly ListColumn[] = [
  createColumn("NAME", "name"),
  { title: "VERIFIED", path: "verified", cell: ({ verified }) => (verified === true ? "yes" : "no") },
  {
    title: "OWNERS",
    path: "owners",
    kind: "prose",
    cell: ({ owners }) => (owners as JsonObject[]).map(describeMember).join(", "),
  },
  createColumn("CREATED", "createTime"),
  createColumn("UID", "uid"),
];

/** The columns of `arbor admin identities list`. */
export const memberColumns: readonly ListColumn[] = [
  createColumn("NAME", "name"),
  { title: "E-MAIL", path: "email", cell: describeAddress },
  createColumn("KIND", "kind"),
  {
    title: "ROLES",
    path: "roles",
    kind: "prose",
    cell: ({ roles }) => [...new Set((roles as JsonObject[]).map(({ roleName }) => roleName))].join(","),
  },
  {
    ...createColumn("LAST SEEN", "lastSeenTime"),
    cell: ({ lastSeenTime, kind }) => String(lastSeenTime ?? (kind === "host" ? "" : "never")),
  },
  createColumn("UID", "uid"),
];

// What was never seen has the time of its creation; only people are created by their first login. Tokens from this host
// are not counted.
function wasSeen(row: Member["row"], kind: Member["kind"]): row is NonNullable<Member["row"]> {
  if (row === undefined || kind === "host") return false;
  return kind === "person" || row.lastSeenTimeMs !== row.createTimeMs;
}

function describeMember(member: JsonObject): string {
  const { uid, name, kind } = member;
  const shown = [name, describeAddress(member)].filter(Boolean).join(" ");
  return kind === "host" ? `${uid} (tokens from this host alone)` : `${uid}${shown === "" ? "" : ` (${shown})`}`;
}

// An address that no login provider of the service has confirmed proves nothing.
function describeAddress({ email = "", emailUnverified = "" }: JsonObject): string {
  return emailUnverified === "" ? String(email) : `${emailUnverified} (not confirmed)`;
}
