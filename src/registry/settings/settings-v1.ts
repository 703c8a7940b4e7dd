// Settings of an organisation's registry, version 1 alone. Where none were made,
// everything is off.
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { invalidArgument, notFound } from "../../kernel/errors.js";
import { rootOf } from "../../kernel/uidp.js";
import type { Handlers } from "../../pipeline/method-table.js";
import type { Tx } from "../../store/port.js";
import { groupKind } from "../repos/repo.js";

/** The part of Registry that is about its settings. */
export const settingsHandlersV1 = {
  async getRegistrySettings({ registryId }, { tx }) {
    await requireRegistry(registryId, tx);
    const { uniqueTags = false, eolGracePeriod = false } = (await tx.registry.settings(registryId)) ?? {};
    return { registryId, uniqueTags, eolGracePeriod };
  },

  async updateRegistrySettings({ registryId, uniqueTags, eolGracePeriod }, { tx }) {
    await requireRegistry(registryId, tx);
    await tx.registry.putSettings({ groupUid: registryId, uniqueTags, eolGracePeriod });
    return { registryId, uniqueTags, eolGracePeriod };
  },
} satisfies Partial<Handlers<typeof Registry>>;

async function requireRegistry(uid: string, tx: Tx): Promise<void> {
  if (rootOf(uid) !== uid) {
    throw invalidArgument({ field: "registryId", description: "registryId must be the id of a root group" });
  }
  if ((await tx.groups.get(uid)) === undefined) throw notFound(groupKind, uid);
}
