// `arbor audit list`, `tail` and `export` over the API.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { AuditService, ListEventsRequestSchema, TailEventsRequestSchema } from "#gen/arbor/audit/v1/audit_pb.js";
import { timestampOf } from "../../../kernel/time.js";
import { invalidFlag } from "../../errors.js";
import { createEventFormatter } from "../../output/audit-log.js";
import { type Format, isTable, parseTimeRange } from "../flags.js";
import { type Session, withSession } from "../session.js";

export interface AuditFlags {
  readonly scope?: string;
  readonly subject?: string;
  readonly actor?: string;
  readonly type?: string;
  readonly requestId?: string;
  /** A time, or how long ago. */
  readonly since?: string;
  readonly until?: string;
  readonly pageSize?: string;
  readonly output: Format;
  readonly columns?: string;
  readonly api?: string;
  readonly tokenFile?: string;
}

type ScopedFlags = AuditFlags & { readonly scope: string };

const { listEvents: listMethod, tailEvents: tailMethod } = AuditService.method;
const PAGE_SIZE = 200;
const MAX_EVENTS = 1_000_000;

const text = (value: unknown) => (typeof value === "string" ? value : "");

/**
 * `arbor audit list --scope`: the newest events first.
 *
 * @throws CommandError INVALID_ARGUMENT for an invalid size or time; the error of the service
 */
export async function listEvents(flags: ScopedFlags): Promise<void> {
  const { pageSize: size = "50" } = flags;
  const count = /^\d{1,7}$/.test(size) ? Number(size) : 0;
  if (count < 1 || count > MAX_EVENTS) throw invalidFlag("--page-size", `must be a number from 1 to ${MAX_EVENTS}`);
  await printEvents(flags, "time desc", count);
}

/** `arbor audit export --scope`: all events as JSON lines, the oldest first, so that a later export continues it. */
export async function exportEvents(flags: ScopedFlags): Promise<void> {
  await printEvents({ ...flags, output: "jsonl" }, "time asc", Number.POSITIVE_INFINITY);
}

/** `arbor audit tail --scope`: the events from now on, until the command is ended. */
export async function tailEvents({ scope, subject = "", actor = "", type = "", ...flags }: ScopedFlags): Promise<void> {
  await withAuditSession(flags, async ({ follow, output }) => {
    const list = createEventFormatter(flags, output.terminal);
    const request = create(TailEventsRequestSchema, { scope, subject, actor, type });
    for await (const { event } of follow(tailMethod, request)) {
      if (event !== undefined) await output.write(list.page([event as JsonObject]));
    }
  });
}

async function printEvents(flags: ScopedFlags, orderBy: string, count: number): Promise<void> {
  const { scope, subject = "", actor = "", type = "", requestId = "" } = flags;
  const { startMs = 0, endMs } = parseTimeRange(flags);
  const times = {
    startTime: timestampOf(startMs),
    ...(endMs !== undefined && { endTime: timestampOf(endMs) }),
  };
  const fixed = { scope, subject, actor, type, requestId, orderBy, ...times };
  await withAuditSession(flags, async ({ call, output }) => {
    const list = createEventFormatter(flags, output.terminal);
    let left = count;
    let pageToken = "";
    do {
      // Page tokens are bound to all fields but the size.
      const pageSize = Math.min(left, PAGE_SIZE);
      const response = await call(listMethod, create(ListEventsRequestSchema, { ...fixed, pageSize, pageToken }));
      const events = (response.events ?? []) as JsonObject[];
      if (events.length > 0) await output.write(list.page(events));
      left -= events.length;
      pageToken = text(response.nextPageToken);
    } while (pageToken !== "" && left > 0);
    await output.write(list.end({}));
    if (pageToken !== "" && isTable(flags.output))
      process.stderr.write("arbor: there are older events: --page-size N prints more, and so does --until TIME\n");
  });
}

function withAuditSession(flags: AuditFlags, work: (session: Session) => Promise<void>): Promise<void> {
  const { api, tokenFile } = flags;
  return withSession({ output: "table", ...(api && { api }), ...(tokenFile && { tokenFile }) }, work);
}
