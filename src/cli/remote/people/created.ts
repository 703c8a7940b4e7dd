// What a person has created and what is still there, by the audit log: workloads, pull tokens and open invites give rights to whoever
// has their secrets.
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { AuditService, ListEventsRequestSchema } from "#gen/arbor/audit/v1/audit_pb.js";
import {
  GroupInvitesService,
  ListGroupInvitesRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { GetGroupRequestSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService, ListIdentitiesRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { timestampOf } from "../../../kernel/time.js";
import { parentOf } from "../../../kernel/uidp.js";
import { Code, CommandError } from "../../errors.js";
import { isPullToken } from "../auth/pull-token.js";
import { type MethodCall, readPages, readRows } from "../method-call.js";

/** What remains of a person's rights, and what to do about it. */
export interface Remainder {
  readonly kind: string;
  readonly what: string;
  readonly uid: string;
  readonly remedy: string;
}

/** Whether an invite can be accepted still. */
export function isOpen({ expirationTime }: JsonObject): boolean {
  return Date.parse(String(expirationTime)) > Date.now();
}

const PAGE_SIZE = 200;
/** How much later than its group the first event may be, in milliseconds. */
const LATE_MS = 60_000;
/** How many pages of events are read. */
const MAX_PAGES = 50;

const created = {
  identity: "dev.chainguard.api.iam.identity.created.v1",
  invite: "dev.chainguard.api.iam.group_invite.created.v1",
} as const;

/** Finds what a person has created in a group and its descendants, and says what the audit log does not tell. */
export async function findCreated(call: MethodCall, group: string, actor: string): Promise<Remainder[]> {
  const note = (what: string, remedy: string): Remainder => ({ kind: "audit log", what, uid: "", remedy });
  try {
    const scope = await findScope(call, group);
    const { uids, isWhole } = await readCreated(call, scope, actor);
    return [
      ...(await describeIdentities(call, uids.identity)),
      ...(await describeInvites(call, group, uids.invite)),
      ...(isWhole ? [] : [note("it has more of what the person did than was read", "`arbor audit list --actor`")]),
      ...(await noteBeginning(call, scope)).map((what) => note(what, "look at workloads and invites from before")),
    ];
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== Code.PermissionDenied) throw error;
    return [note("you may not read what the person has created", "ask an owner for `arbor audit list --actor`")];
  }
}

/** The part of the audit log that is read: that of a group, from its creation on. */
interface LogScope {
  readonly scope: string;
  readonly createTime: string;
  /** Of a group in an organisation a start is required. */
  readonly startTime: { readonly startTime?: Timestamp };
}

async function findScope(call: MethodCall, group: string): Promise<LogScope> {
  const found = await call(GroupsService.method.getGroup, create(GetGroupRequestSchema, { uid: group }));
  const createTime = String(found.createTime);
  const isRoot = parentOf(group) === undefined;
  return { scope: group, createTime, startTime: isRoot ? {} : { startTime: timestampOf(Date.parse(createTime)) } };
}

/** Reads the uids of what the person has created. */
async function readCreated(call: MethodCall, { scope, startTime }: LogScope, actor: string) {
  const request = create(ListEventsRequestSchema, { scope, actor, ...startTime, pageSize: PAGE_SIZE });
  const uids = { identity: new Set<string>(), invite: new Set<string>() };
  let pages = 0;
  for await (const { events = [], nextPageToken = "" } of readPages(call, AuditService.method.listEvents, request)) {
    for (const { type, subjectUid } of events as JsonObject[]) {
      if (type === created.identity) uids.identity.add(String(subjectUid));
      if (type === created.invite) uids.invite.add(String(subjectUid));
    }
    if (++pages === MAX_PAGES && nextPageToken !== "") return { uids, isWhole: false };
  }
  return { uids, isWhole: true };
}

async function describeIdentities(call: MethodCall, uids: ReadonlySet<string>): Promise<Remainder[]> {
  const found: Remainder[] = [];
  for await (const identity of readByUids(call, uids)) {
    const kind = isPullToken(identity) ? "pull token" : "workload";
    const remedy =
      kind === "pull token"
        ? "`arbor auth pull-tokens revoke UID`, if it is not needed"
        : "`arbor iam identities delete UID`, if it is not needed";
    found.push({ kind, what: `${identity.name}, which the person has created`, uid: String(identity.uid), remedy });
  }
  return found;
}

async function* readByUids(call: MethodCall, uids: ReadonlySet<string>): AsyncGenerator<JsonObject> {
  const all = [...uids];
  for (let i = 0; i < all.length; i += PAGE_SIZE) {
    const uidp = { ids: all.slice(i, i + PAGE_SIZE) };
    const request = create(ListIdentitiesRequestSchema, { uidp, pageSize: PAGE_SIZE });
    yield* readRows(call, IdentitiesService.method.listIdentities, request);
  }
}

async function describeInvites(call: MethodCall, group: string, uids: ReadonlySet<string>): Promise<Remainder[]> {
  if (uids.size === 0) return [];
  const found: Remainder[] = [];
  const request = create(ListGroupInvitesRequestSchema, { uidp: { descendantsOf: group }, pageSize: PAGE_SIZE });
  for await (const invite of readRows(call, GroupInvitesService.method.listGroupInvites, request)) {
    if (!uids.has(String(invite.uid)) || !isOpen(invite)) continue;
    const { email = "", role, uid } = invite;
    const what = `for ${email || "everybody who has the code"} as ${(role as JsonObject | undefined)?.name}, by the person`;
    found.push({ kind: "group invite", what, uid: String(uid), remedy: "`arbor iam group-invites delete UID`" });
  }
  return found;
}

/** Says when the log begins, where that is later than the group. */
async function noteBeginning(call: MethodCall, { scope, createTime, startTime }: LogScope): Promise<string[]> {
  const request = create(ListEventsRequestSchema, { scope, ...startTime, orderBy: "time asc", pageSize: 1 });
  const { events = [] } = await call(AuditService.method.listEvents, request);
  const [oldest] = events as JsonObject[];
  const begins = String(oldest?.time ?? new Date().toISOString());
  return Date.parse(begins) <= Date.parse(createTime) + LATE_MS ? [] : [`it begins at ${begins}, later than the group`];
}
