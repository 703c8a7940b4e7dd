// Organisations with advisories and callers, on any store, without sockets.
import { create, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import {
  AdvisoriesService,
  type Advisory,
  type ListAdvisoriesRequestSchema,
  type ListAdvisoriesResponseSchema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { createPageTokens } from "../../src/kernel/page-token.js";
import { UnaryCall } from "../../src/pipeline/call.js";
import { createInvoke } from "../../src/pipeline/invoke.js";
import { createMethodTable } from "../../src/pipeline/method-table.js";
import { createListResources } from "../../src/pipeline/resource/read.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import type { Store } from "../../src/store/store.js";
import { advisoriesV2beta1 } from "../../src/vulnerabilities/advisories/advisory-v2beta1.js";
import { inboundOf, principalOf } from "../support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";

export type ListRequest = MessageInitShape<typeof ListAdvisoriesRequestSchema>;
export type ListResponse = MessageShape<typeof ListAdvisoriesResponseSchema>;

/** Calls the service as an identity; rejects with what the service throws. */
export interface AdvisoryWorld {
  list(identity: string, request: ListRequest): Promise<ListResponse>;
  get(identity: string, uid: string): Promise<Advisory>;
  /** A new identity that may list advisories in these groups. */
  reader(...groups: readonly string[]): Promise<string>;
  /** A new identity with these capabilities in a group. */
  holder(group: string, ...capabilities: readonly string[]): Promise<string>;
}

export const ours = rootUid(0xa1);
export const theirs = rootUid(0xb1);
export const child = childUid(ours, 1);
export const sibling = childUid(ours, 2);

/** Creates the groups: one with two child groups, and one of another organisation. */
export async function advisoryWorld(store: Store): Promise<AdvisoryWorld> {
  await store.write(async (tx) => {
    for (const uid of [ours, theirs, child, sibling]) await tx.table(groupKind).insert(groupRow(uid));
  });
  const tokens = createPageTokens(() => [{ id: "00".repeat(8), secret: Buffer.alloc(32, 7) }]);
  const methods = createMethodTable([advisoriesV2beta1({ listResources: createListResources(tokens) })]);
  const invoke = createInvoke({
    store,
    clock: Date.now,
    errorDomain: "test",
    onInternalError: (error) => {
      throw error.cause;
    },
  });
  const callMethod = async (name: "getAdvisory" | "listAdvisories", identity: string, request: object) => {
    const desc = AdvisoriesService.method[name];
    const entry = methods.get(`/${AdvisoriesService.typeName}/${desc.name}`);
    const call = new UnaryCall(inboundOf(identity), desc, Date.now());
    return invoke(entry as never, call, principalOf(identity), create(desc.input, request as never));
  };
  let made = 0;
  const holder: AdvisoryWorld["holder"] = async (group, ...capabilities) => {
    made++;
    const [identity, role] = [rootUid(0xc0000 + made), childUid(group, 0xd0000 + made)];
    await store.write(async (tx) => {
      await tx.table(identityKind).insert(identityRow(identity));
      await tx
        .table(roleKind)
        .insert(roleRow(role, { groupUid: group, capabilities: buildCapabilitySet(capabilities) }));
      await tx.table(roleBindingKind).insert(bindingRow(childUid(group, 0xe0000 + made), identity, role));
    });
    return identity;
  };
  return {
    list: (identity, request) => callMethod("listAdvisories", identity, request) as Promise<ListResponse>,
    get: (identity, uid) => callMethod("getAdvisory", identity, { uid }) as Promise<Advisory>,
    holder,
    async reader(...[first = ours, ...others]) {
      const identity = await holder(first, "advisories.list");
      for (const group of others) {
        made++;
        const role = childUid(group, 0xd0000 + made);
        await store.write(async (tx) => {
          const row = roleRow(role, { groupUid: group, capabilities: buildCapabilitySet(["advisories.list"]) });
          await tx.table(roleKind).insert(row);
          await tx.table(roleBindingKind).insert(bindingRow(childUid(group, 0xe0000 + made), identity, role));
        });
      }
      return identity;
    },
  };
}
