// `arbor admin organisations` and `arbor admin identities`, also while servers run; and what `arbor bootstrap` says.
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
import { createTable } from "../output/table.js";
import { escapeControls } from "../output/terminal.js";
import { formatTime } from "../output/time.js";
import { print, withInstallation } from "./host.js";

const MAX_ROWS = 1_000;

interface PageOptions {
  readonly pageSize: string;
  readonly pageToken: string;
  readonly json?: boolean;
}

/** `arbor admin organisations list` */
export async function organisationListCommand(settings: Settings, options: PageOptions): Promise<void> {
  const page = parsePage(options);
  await withInstallation(settings, "read", async ({ store }) => {
    const listed = await store.read((tx) => listOrganisations(tx, page));
    printRows(listed, options, organisationToJson, formatOrganisations);
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
    printRows(listed, options, memberToJson, formatMembers);
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
      (owner) => `  owner ${formatMember(owner)}; its token: arbor admin token --identity ${owner.uid}${flags}`,
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

function printRows<Row>(
  rows: readonly Row[],
  { json = false }: PageOptions,
  toJson: (row: Row) => object,
  format: (rows: readonly Row[]) => string[],
): void {
  for (const line of json ? rows.map((row) => escapeControls(JSON.stringify(toJson(row)))) : format(rows)) print(line);
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

function formatOrganisations(listed: readonly Organisation[]): string[] {
  const cells = listed.map(({ row, owners }) => [
    row.uid,
    row.name,
    row.verified ? "yes" : "no",
    formatTime(row.createTimeMs),
    owners.map(formatMember).join(", "),
  ]);
  return formatTable(["UID", "NAME", "VERIFIED", "CREATED", "OWNERS"], cells);
}

function formatMembers(listed: readonly Member[]): string[] {
  const cells = listed.map(({ uid, kind, row, grants }) => [
    uid,
    kind,
    row?.name ?? "",
    formatAddress(row),
    [...new Set(grants.map(({ roleName }) => roleName))].join(","),
    wasSeen(row, kind) ? formatTime(row.lastSeenTimeMs) : kind === "host" ? "" : "never",
  ]);
  return formatTable(["UID", "KIND", "NAME", "E-MAIL", "ROLES", "LAST SEEN"], cells);
}

// What was never seen has the time of its creation; only people are created by their first login. Tokens from this host
// are not counted.
function wasSeen(row: Member["row"], kind: Member["kind"]): row is NonNullable<Member["row"]> {
  if (row === undefined || kind === "host") return false;
  return kind === "person" || row.lastSeenTimeMs !== row.createTimeMs;
}

function formatMember({ uid, row, kind }: Member): string {
  const shown = [row?.name, formatAddress(row)].filter(Boolean).join(" ");
  return kind === "host" ? `${uid} (tokens from this host alone)` : `${uid}${shown === "" ? "" : ` (${shown})`}`;
}

// An address that no login provider of the service has confirmed proves nothing.
function formatAddress(row: Member["row"]): string {
  if (row === undefined || row.emailUnverified === "") return row?.email ?? "";
  return `${row.emailUnverified} (not confirmed)`;
}

function formatTable(titles: readonly string[], cells: readonly (readonly string[])[]): string[] {
  return createTable(
    titles.map((title) => ({ title })),
    { colour: false, width: undefined },
  ).lines(cells);
}
