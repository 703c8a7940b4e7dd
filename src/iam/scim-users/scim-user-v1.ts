// ScimUsers, version 1: a view of ScimUsersService. It has no pages, so a list ends after some people.
import { create } from "@bufbuild/protobuf";
import { type ScimUser, ScimUserSchema, ScimUsers } from "#gen/chainguard/platform/iam/scim_users_pb.js";
import type { ScimUser as ScimUserV2 } from "#gen/chainguard/platform/iam/v2beta1/scim_users_pb.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { getRow } from "../../pipeline/resource/read.js";
import type { ListQuery } from "../../store/lists/query.js";
import { identityProviders } from "../identity-providers/identity-provider.js";
import { parseScimUserFilter, readScimUsers, scimUserToProto } from "./scim-user.js";

/** How many people a list has at most. */
const MAX_LISTED = 1_000;

/** Creates ScimUsers of version 1. */
export function scimUsersV1() {
  const handlers: Handlers<typeof ScimUsers> = {
    async list({ identityProviderUidp: parent, ...filter }, { tx }) {
      await getRow(tx, identityProviders, parent);
      const query: ListQuery = {
        visible: [parent],
        filter: { childrenOf: parent, equals: parseScimUserFilter(filter) },
        order: { field: "uid", descending: false },
        ...{ skip: 0, limit: MAX_LISTED },
      };
      const { rows, total } = await readScimUsers(parent, query, tx);
      return { items: rows.map((row) => toProtoV1(scimUserToProto(row))), totalCount: BigInt(total) };
    },
  };
  return serve(ScimUsers, handlers);
}

function toProtoV1({
  uid,
  identityProviderUid,
  iamIdentityUid,
  createTime,
  updateTime,
  ...same
}: ScimUserV2): ScimUser {
  const { userName, externalId, displayName, active } = same;
  return create(ScimUserSchema, {
    ...{ id: uid, identityProviderUidp: identityProviderUid, iamIdentityUidp: iamIdentityUid },
    ...{ userName, externalId, displayName, active },
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  });
}
