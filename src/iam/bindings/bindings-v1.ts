// The handlers of BindingsService: the caller's own bindings.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Binding, BindingSchema, BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { invalidArgument, permissionDenied } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { serve, withOutcome } from "../../pipeline/method-table.js";
import { pageSizeOf } from "../../pipeline/resource/list-query.js";
import type { IamDeps } from "../iam-deps.js";
import { acceptBinding, dropBinding, listBindingsOf, type OwnBinding } from "../people/pending-bindings.js";

/** BindingsService, ready to be served. */
export function bindingsV1({ tokens }: Pick<IamDeps, "tokens">) {
  return serve(BindingsService, {
    async listBindings({ pending, pageSize, pageToken }, call) {
      const { tx, startMs } = call;
      const identityUid = unlimitedCaller(call, "listing bindings");
      const limit = pageSizeOf(pageSize);
      const binding = JSON.stringify(["ListBindings", identityUid, pending]);
      const cursor = pageToken === "" ? undefined : tokens.read(pageToken, binding, startMs);
      const rows = await listBindingsOf(tx, identityUid, { pending, limit: limit + 1, after: cursor?.uid ?? "" });
      const last = rows.length > limit ? rows[limit - 1] : undefined;
      return {
        bindings: rows.slice(0, limit).map(bindingView),
        nextPageToken: last ? tokens.make({ key: last.uid, uid: last.uid, skip: 0 }, binding, startMs) : "",
        totalCount: BigInt(await tx.roleBindings.countPending(identityUid, pending)),
      };
    },

    async acceptBinding({ uid }, call) {
      const identityUid = unlimitedCaller(call, `accepting ${checked(uid)}`);
      return bindingView(await acceptBinding(call.tx, identityUid, uid));
    },

    async dropBinding({ uid }, call) {
      await dropBinding(call.tx, unlimitedCaller(call, `dropping ${checked(uid)}`), uid);
      return withOutcome({}, { subjectUid: uid });
    },
  });
}

// Who may use a token for less than its bearer may do learns nothing of the rest, and changes none of it.
function unlimitedCaller({ caller }: UnaryCall, doing: string): string {
  if (!caller.unlimited) throw permissionDenied(`${doing} with a token that is limited`);
  return caller.uid;
}

function checked(uid: string): string {
  if (isUidp(uid)) return uid;
  throw invalidArgument({ field: "uid", description: "uid must be a uid, such as the service assigns" });
}

function bindingView(row: OwnBinding): Binding {
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
