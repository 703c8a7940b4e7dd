// The handlers of BindingsService: the caller's own bindings.
import { create } from "@bufbuild/protobuf";
import {
  type AcceptBindingRequest,
  type Binding,
  BindingSchema,
  BindingsService,
  type DropBindingRequest,
} from "#gen/arbor/bindings/v1/bindings_pb.js";
import { invalidArgument, notPermitted } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { isUidp } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withOutcome } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import type { ResourceDeps } from "../../pipeline/resource/read.js";
import { type HydratedBinding, roleBindingKind } from "../../store/iam/role-bindings.js";
import type { ListQuery, Page } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import { acceptBinding, addOrganisation, dropBinding, type OwnBinding } from "../people/pending-bindings.js";
import { roleBindings, roleBindingView } from "../role-bindings/role-binding.js";

// The methods need no right at a group, so the request alone names the binding.
const bodies = defineBodies(
  { message: BindingSchema, readers: roleBindingView.readers },
  async (_, { tx }, { uid }: AcceptBindingRequest | DropBindingRequest) => {
    const [row] = await tx.table(roleBindingKind).findHydrated([uid]);
    return row && bindingToProto(await addOrganisation(tx, row));
  },
);

/** Creates BindingsService. */
export function bindingsV1({ listResources }: Pick<ResourceDeps, "listResources">) {
  const handlers: Handlers<typeof BindingsService> = {
    async listBindings({ pending, ...page }, call) {
      const { tx } = call;
      const identityUid = requireUnlimitedCaller(call, "listing bindings");
      const options = {
        method: `ListBindings ${identityUid} ${pending}`,
        visible: [],
        readPage: (query: ListQuery) => readOwnPage(query, { tx, identityUid, pending }),
      };
      const { resources, nextPageToken, totalCount } = await listResources(
        call,
        roleBindings,
        { ...page, orderBy: "", skip: 0 },
        async (row) => bindingToProto(await addOrganisation(tx, row)),
        options,
      );
      return { bindings: await Promise.all(resources), nextPageToken, totalCount };
    },

    async acceptBinding({ uid }, call) {
      const identityUid = requireUnlimitedCaller(call, `accepting ${requireUid(uid)}`);
      return bindingToProto(await acceptBinding(call.tx, identityUid, uid));
    },

    async dropBinding({ uid }, call) {
      await dropBinding(call.tx, requireUnlimitedCaller(call, `dropping ${requireUid(uid)}`), uid);
      return withOutcome({}, { subjectUid: uid });
    },
  };
  return serve(BindingsService, handlers, {
    acceptBinding: { body: bodies.updated },
    dropBinding: { body: bodies.deleted },
  });
}

interface OwnBindings {
  readonly tx: Tx;
  readonly identityUid: string;
  readonly pending: boolean;
}

// The bindings of one identity lie in groups of any organisation, so their order is that of their uids alone.
async function readOwnPage(
  { after, limit }: ListQuery,
  { tx, identityUid, pending }: OwnBindings,
): Promise<Page<HydratedBinding>> {
  const found = await tx.table(roleBindingKind).findByPending(identityUid, pending, after?.uid ?? "", limit + 1);
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  const total = await tx.table(roleBindingKind).countPending(identityUid, pending);
  return { rows, next: last && { key: last.uid, uid: last.uid }, total };
}

// A limited token neither shows nor changes the other rights of its bearer.
function requireUnlimitedCaller({ caller }: UnaryCall, action: string): string {
  if (!caller.unlimited) throw notPermitted(`${action} needs a token that is not limited`);
  return caller.uid;
}

function requireUid(uid: string): string {
  if (isUidp(uid)) return uid;
  throw invalidArgument({ field: "uid", rule: "must be a uid, such as the service assigns" });
}

function bindingToProto(row: OwnBinding): Binding {
  const { organisation, groupUid, groupName } = row;
  return create(BindingSchema, {
    uid: row.uid,
    group: { uid: groupUid, name: groupName, verified: groupUid === organisation.uid && organisation.verified },
    organization: organisation,
    role: { uid: row.roleUid, name: row.roleName, description: row.roleDescription },
    pending: row.pending,
    createTime: timestampOf(row.createTimeMs),
    ...(row.endTimeMs !== null && { endTime: timestampOf(row.endTimeMs) }),
  });
}
