// The handlers of BindingsService: the caller's own bindings.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Binding, BindingSchema, BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { invalidArgument, permissionDenied } from "../../kernel/errors.js";
import type { PageTokens } from "../../kernel/page-token.js";
import { isUidp } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { serve, withOutcome } from "../../pipeline/method-table.js";
import { parsePageSize } from "../../pipeline/resource/list-query.js";
import { acceptBinding, dropBinding, listOwnBindings, type OwnBinding } from "../people/pending-bindings.js";

/** Creates BindingsService. */
export function bindingsV1({ tokens }: { readonly tokens: PageTokens }) {
  return serve(BindingsService, {
    async listBindings({ pending, pageSize, pageToken }, call) {
      const { tx, startMs } = call;
      const identityUid = requireUnlimitedCaller(call, "listing bindings");
      const limit = parsePageSize(pageSize);
      const binding = JSON.stringify(["ListBindings", identityUid, pending]);
      const cursor = pageToken === "" ? undefined : tokens.read(pageToken, binding, startMs);
      const rows = await listOwnBindings(tx, identityUid, { pending, limit: limit + 1, after: cursor?.uid ?? "" });
      const last = rows.length > limit ? rows[limit - 1] : undefined;
      return {
        bindings: rows.slice(0, limit).map(bindingToProto),
        nextPageToken: last ? tokens.make({ key: last.uid, uid: last.uid, skip: 0 }, binding, startMs) : "",
        totalCount: BigInt(await tx.roleBindings.countPending(identityUid, pending)),
      };
    },

    async acceptBinding({ uid }, call) {
      const identityUid = requireUnlimitedCaller(call, `accepting ${requireUid(uid)}`);
      return bindingToProto(await acceptBinding(call.tx, identityUid, uid));
    },

    async dropBinding({ uid }, call) {
      await dropBinding(call.tx, requireUnlimitedCaller(call, `dropping ${requireUid(uid)}`), uid);
      return withOutcome({}, { subjectUid: uid });
    },
  });
}

// A limited token neither shows nor changes the other rights of its bearer.
function requireUnlimitedCaller({ caller }: UnaryCall, action: string): string {
  if (!caller.unlimited) throw permissionDenied(`${action} with a token that is limited`);
  return caller.uid;
}

function requireUid(uid: string): string {
  if (isUidp(uid)) return uid;
  throw invalidArgument({ field: "uid", description: "uid must be a uid, such as the service assigns" });
}

function bindingToProto(row: OwnBinding): Binding {
  const { organization, groupUid, groupName } = row;
  return create(BindingSchema, {
    uid: row.uid,
    group: { uid: groupUid, name: groupName, verified: groupUid === organization.uid && organization.verified },
    organization,
    role: { uid: row.roleUid, name: row.roleName, description: row.roleDescription },
    pending: row.pending,
    createTime: timestampFromMs(row.createTimeMs),
  });
}
