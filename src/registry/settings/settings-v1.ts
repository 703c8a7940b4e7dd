// The registry settings of an organisation, which only version 1 has. Every setting is off until it is changed.
import { Registry, RegistrySettingsSchema } from "#gen/chainguard/platform/registry/registry_pb.js";
import { groups } from "../../iam/groups/group.js";
import { invalidArgument } from "../../kernel/errors.js";
import { rootOf } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import type { Handlers } from "../../pipeline/handlers.js";
import type { ResourceDefinition } from "../../pipeline/resource/define.js";
import { getRow } from "../../pipeline/resource/read.js";
import type { Tx } from "../../store/transaction.js";

/** The settings of a registry; a group has at most one row of them. */
export const registrySettings: ResourceDefinition = {
  displayName: "registry settings",
  plural: "registry settings",
  type: "registry.chainguard.dev/RegistrySettings",
  message: RegistrySettingsSchema,
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { cascade: (tx, groupUid) => tx.registry.deleteSettings(groupUid) },
  },
};

/** The bodies of its methods in the audit log. */
export const settingsBodiesV1 = defineBodies(
  { message: RegistrySettingsSchema, readers: [Registry.method.getRegistrySettings] },
  async (registryId, { tx }) => {
    const row = await tx.registry.findSettings(registryId);
    return row && { registryId, uniqueTags: row.uniqueTags, eolGracePeriod: row.eolGracePeriod };
  },
);

/** The handlers of Registry for its settings. */
export const settingsHandlersV1 = {
  async getRegistrySettings({ registryId }, { tx }) {
    await requireRegistry(registryId, tx);
    const { uniqueTags = false, eolGracePeriod = false } = (await tx.registry.findSettings(registryId)) ?? {};
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
    throw invalidArgument({ field: "registryId", rule: "must be the id of a root group" });
  }
  await getRow(tx, groups, uid);
}
