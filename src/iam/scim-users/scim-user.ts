// The resource of people whom directories have sent by SCIM, and its handlers in version 2beta1. Their directory alone creates,
// changes and deletes them.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import { ScimUsersService as StableScimUsersService } from "#gen/chainguard/platform/iam/v2/scim_users_pb.js";
import {
  type ListScimUsersRequest,
  type ScimUser,
  ScimUserSchema,
  ScimUsersService,
} from "#gen/chainguard/platform/iam/v2beta1/scim_users_pb.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { deleteRows } from "../../pipeline/resource/delete.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import { buildUserNameKey, type ScimUserRow, scimUserKind } from "../../store/iam/scim-users.js";
import type { ListQuery, Page } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import { identityProviders } from "../identity-providers/identity-provider.js";

export const scimUsers = defineResource({
  displayName: "SCIM user",
  type: "iam.chainguard.dev/ScimUser",
  plural: "SCIM users",
  message: ScimUserSchema,
  kind: scimUserKind,
  parent: {
    type: identityProviders.type,
    onDelete: { cascade: (tx, uid) => deleteRows(tx.table(scimUserKind), "providerUid", uid) },
  },
  stable: StableScimUsersService,
  mutable: {},
});

/** Converts a stored person to version 2. */
export function scimUserToProto(row: ScimUserRow): ScimUser {
  const { uid, providerUid, userName, externalId, displayName, active, identityUid } = row;
  const view: MessageInitShape<typeof ScimUserSchema> = {
    ...{ uid, identityProviderUid: providerUid, userName, externalId, displayName, active },
    iamIdentityUid: identityUid ?? "",
    createTime: timestampOf(row.createTimeMs),
    updateTime: timestampOf(row.updateTimeMs),
  };
  return create(ScimUserSchema, view);
}

/** Which people a list has; all that are set must match. */
export type ScimUserFilter = Pick<ListScimUsersRequest, "userName" | "externalId" | "active">;

/**
 * Parses the filters of a list into values of columns.
 *
 * @throws ApiError INVALID_ARGUMENT for one with control characters
 */
export function parseScimUserFilter({ userName, externalId, active }: ScimUserFilter) {
  const violations = Object.entries({ userName, externalId }).flatMap(([field, value]): FieldViolation[] =>
    isPrintable(value) ? [] : [{ field, rule: "must not contain control characters" }],
  );
  if (violations.length > 0) throw invalidArgument(...violations);
  return {
    ...(userName !== "" && { userNameKey: buildUserNameKey(userName) }),
    ...(externalId !== "" && { externalId }),
    ...(active !== undefined && { active: active ? 1 : 0 }),
  };
}

/**
 * Reads a page of the people of a provider. A name or an id finds its one person by its index.
 *
 * @param query with the filters of {@link parseScimUserFilter}
 */
export async function readScimUsers(providerUid: string, query: ListQuery, tx: Tx): Promise<Page<ScimUserRow>> {
  const table = tx.table(scimUserKind);
  const { userNameKey, externalId } = query.filter.equals ?? {};
  if (userNameKey === undefined && externalId === undefined) return table.list(query);
  const row =
    externalId === undefined
      ? await table.findByUserName(providerUid, String(userNameKey))
      : await table.findByExternalId(providerUid, String(externalId));
  // The other filters apply to it as well.
  return table.list({ ...query, filter: { ...query.filter, uids: row === undefined ? [] : [row.uid] } });
}

/** Creates ScimUsersService. */
export function scimUsersV2beta1({ listResources }: Pick<ResourceDeps, "listResources">) {
  const handlers: Handlers<typeof ScimUsersService> = {
    async listScimUsers({ parent, ...request }, call) {
      await getRow(call.tx, identityProviders, parent);
      // The parent is among the filters, so that a page token is one of its list alone.
      const paged = { ...request, uidp: create(UIDPFilterSchema, { childrenOf: parent }) };
      const { resources, ...page } = await listResources(call, scimUsers, paged, scimUserToProto, {
        visible: [parent],
        equals: parseScimUserFilter(request),
        readPage: (query) => readScimUsers(parent, query, call.tx),
      });
      return { scimUsers: resources, ...page };
    },
  };
  return serve(ScimUsersService, handlers);
}
