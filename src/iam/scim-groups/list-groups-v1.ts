// ScimService.ListScimGroups: the groups that a directory has sent, with the mappings that match them.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ListedScimGroupSchema, ScimService } from "#gen/arbor/scim/v1/scim_pb.js";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { groupMappingKind } from "../../store/iam/group-mappings.js";
import type { ScimGroupRow } from "../../store/iam/scim-groups.js";
import type { Tx } from "../../store/transaction.js";
import { identityProviders } from "../identity-providers/identity-provider.js";
import { scimGroups, scimGroupToProto } from "./scim-group.js";

/** How many mappings of a group are listed at most. */
const MAX_MAPPINGS = 20;

/** Creates the handler of ListScimGroups. */
export function createListScimGroups({
  listResources,
}: Pick<ResourceDeps, "listResources">): Handlers<typeof ScimService>["listScimGroups"] {
  return async ({ identityProvider, ...page }, call) => {
    await getRow(call.tx, identityProviders, identityProvider);
    // The provider is among the filters, so that a page token is one of its list alone.
    const uidp = create(UIDPFilterSchema, { childrenOf: identityProvider });
    const { resources, nextPageToken, totalCount } = await listResources(
      call,
      scimGroups,
      { ...page, uidp, orderBy: "uid", skip: 0 },
      (row) => row,
      { visible: [identityProvider] },
    );
    const groups: MessageInitShape<typeof ListedScimGroupSchema>[] = [];
    for (const row of resources) groups.push(await readGroup(row, call.tx));
    return { groups, nextPageToken, totalCount };
  };
}

async function readGroup(row: ScimGroupRow, tx: Tx): Promise<MessageInitShape<typeof ListedScimGroupSchema>> {
  const mappings = await tx.table(groupMappingKind).findOfGroup(row.providerUid, row.mappedId, MAX_MAPPINGS);
  return {
    group: scimGroupToProto(row),
    members: BigInt(await tx.scimMembers.count({ groupUid: row.uid, memberSet: row.memberSet })),
    mappings: mappings.map(({ uid }) => uid),
  };
}
