// `arbor audit list`, `tail` and `export` over the API.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AuditService, ListEventsRequestSchema, TailEventsRequestSchema } from "#gen/arbor/audit/v1/audit_pb.js";
import { invalidFlag } from "../../errors.js";
import { createListFormatter, type ListColumn } from "../../output/format.js";
import { type Session, withSession } from "../session.js";

/** The flags of these commands. */
export interface AuditFlags {
  readonly scope?: string;
  readonly subject?: string;
  readonly actor?: string;
  readonly type?: string;
  readonly requestId?: string;
  /** A time, or how long ago. */
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly json?: boolean;
  readonly api?: string;
  readonly tokenFile?: string;
}

type ScopedFlags = AuditFlags & { readonly scope: string };

const { listEvents: listMethod, tailEvents: tailMethod } = AuditService.method;
const PAGE_SIZE = 200;
const MAX_EVENTS = 1_000_000;

const text = (value: unknown) => (typeof value === "string" ? value : "");
const columns: readonly ListColumn[] = [
  { title: "TIME", cell: ({ time }) => text(time) },
  { title: "TYPE", cell: ({ type }) => text(type) },
  { title: "SUBJECT", cell: ({ subjectUid }) => text(subjectUid) },
  { title: "ACTOR", cell: ({ actorUid }) => text(actorUid) },
  { title: "NAME", cell: ({ actorName }) => text(actorName) },
  { title: "REQUEST", cell: ({ requestId }) => text(requestId) },
  { title: "FROM", cell: ({ remoteAddress }) => text(remoteAddress) },
];

/**
 * `arbor audit list --scope`: the newest events first.
 *
 * @throws CommandError INVALID_ARGUMENT for an invalid limit or time; the error of the service
 */
export async function listEvents(flags: ScopedFlags): Promise<void> {
  const { limit = "50" } = flags;
  const count = /^\d{1,7}$/.test(limit) ? Number(limit) : 0;
  if (count < 1 || count > MAX_EVENTS) throw invalidFlag("--limit", `limit must be a number from 1 to ${MAX_EVENTS}`);
  await printEvents(flags, "time desc", flags.json === true, count);
}

/** `arbor audit export --scope`: all events as JSON lines, the oldest first, so that a later export continues it. */
export async function exportEvents(flags: ScopedFlags): Promise<void> {
  await printEvents(flags, "time asc", true, Number.POSITIVE_INFINITY);
}

/** `arbor audit tail --scope`: the events from now on, until the command is ended. */
export async function tailEvents({ scope, subject = "", actor = "", type = "", ...flags }: ScopedFlags): Promise<void> {
  const json = flags.json === true;
  await withAuditSession(flags, async ({ follow, output }) => {
    const list = formatterFor(json, output);
    const request = create(TailEventsRequestSchema, { scope, subject, actor, type });
    for await (const { event } of follow(tailMethod, request)) {
      if (event !== undefined) await output.write(list.page([event as JsonObject]));
    }
  });
}

async function printEvents(flags: ScopedFlags, orderBy: string, json: boolean, count: number): Promise<void> {
  const { scope, subject = "", actor = "", type = "", requestId = "", since, until } = flags;
  const startTime = timestampFromMs(since === undefined ? 0 : parseTime("--since", since));
  const endTime = until === undefined ? undefined : timestampFromMs(parseTime("--until", until));
  const fixed = { scope, subject, actor, type, requestId, startTime, orderBy, ...(endTime && { endTime }) };
  await withAuditSession(flags, async ({ call, output }) => {
    const list = formatterFor(json, output);
    let left = count;
    let pageToken = "";
    do {
      // Page tokens are bound to all fields but the size.
      const pageSize = Math.min(left, PAGE_SIZE);
      const answer = await call(listMethod, create(ListEventsRequestSchema, { ...fixed, pageSize, pageToken }));
      const events = (answer.events ?? []) as JsonObject[];
      if (events.length > 0) await output.write(list.page(events));
      left -= events.length;
      pageToken = text(answer.nextPageToken);
    } while (pageToken !== "" && left > 0);
    await output.write(list.end({}));
  });
}

function withAuditSession(flags: AuditFlags, work: (session: Session) => Promise<void>): Promise<void> {
  const { api, tokenFile } = flags;
  return withSession({ output: "table", ...(api && { api }), ...(tokenFile && { tokenFile }) }, work);
}

function formatterFor(json: boolean, { terminal }: Session["output"]) {
  return createListFormatter(json ? "jsonl" : "table", "events", columns, terminal);
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function parseTime(flag: string, value: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(value) ?? [];
  if (count !== undefined) return Math.max(0, Date.now() - Number(count) * (unitMs[unit] ?? 0));
  const ms = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(value) ? Date.parse(value) : Number.NaN;
  if (ms >= 0) return ms;
  throw invalidFlag(flag, `${flag} must be a time such as 2026-01-31T12:00:00Z, or a duration such as 24h`);
}
