// Overlays: the resource, and OverlaysService in version 2beta1. The service stores what is added to images for those that build
// them.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { OverlaysService as StableOverlaysService } from "#gen/chainguard/platform/registry/v2/overlays_pb.js";
import { type Overlay, OverlaySchema, OverlaysService } from "#gen/chainguard/platform/registry/v2beta1/overlays_pb.js";
import { type CustomOverlay, CustomOverlaySchema } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { groups } from "../../iam/groups/group.js";
import { alreadyExists, failedPrecondition } from "../../kernel/errors.js";
import { defineBodies } from "../../pipeline/body.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { countRows } from "../../pipeline/resource/delete.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { isName } from "../../pipeline/resource/rules.js";
import { overlayBindingKind } from "../../store/registry/overlay-bindings.js";
import { type OverlayRow, overlayKind } from "../../store/registry/overlays.js";
import type { Tx } from "../../store/transaction.js";
import { isWholeOverlay, MAX_REPO_REQUEST } from "../repos/repo-rules.js";

export const overlays = defineResource({
  displayName: "overlay",
  type: "registry.chainguard.dev/Overlay",
  plural: "overlays",
  message: OverlaySchema,
  kind: overlayKind,
  parent: {
    type: groups.type,
    onDelete: { restrict: (tx, uid) => countRows(tx.table(overlayKind), "groupUid", uid) },
  },
  createdBy: [createsInScope(OverlaysService.method.createOverlay)],
  stable: StableOverlaysService,
  mutable: { name: isName, config: isWholeOverlay },
});

/** Converts a stored overlay to version 2. */
export function overlayToProto({ uid, name, config }: OverlayRow): Overlay {
  const custom = fromJson(CustomOverlaySchema, config as JsonObject, { ignoreUnknownFields: true });
  return create(OverlaySchema, { uid, name, config: custom });
}

/** Converts what an overlay adds to what is stored: the JSON of its message. */
function configToJson(config: CustomOverlay | undefined): object {
  return config === undefined ? {} : (toJson(CustomOverlaySchema, config) as JsonObject);
}

/** Creates OverlaysService. */
export function overlaysV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  const handlers: Handlers<typeof OverlaysService> = {
    getOverlay: ({ uid }, { tx }) => getResource(tx, overlays, uid, overlayToProto),

    async listOverlays(request, call) {
      const { resources, ...page } = await listResources(call, overlays, request, overlayToProto);
      return { overlays: resources, ...page };
    },

    async createOverlay({ parent, overlay }, { tx, startMs }) {
      await getRow(tx, groups, parent);
      const { name, config } = buildValues(overlays, overlay);
      await requireFreeName(parent, name, tx);
      const row: OverlayRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        name,
        config: configToJson(config),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.table(overlayKind).insert(row);
      return overlayToProto(row);
    },

    async updateOverlay({ overlay, updateMask }, { tx, startMs }) {
      const before = await getRow(tx, overlays, overlay?.uid ?? "");
      const patch = buildPatch(overlays, overlay, updateMask, overlayToProto(before));
      if (Object.keys(patch).length === 0) return overlayToProto(before);
      const { name = before.name, config } = patch;
      if (name !== before.name) await requireFreeName(before.groupUid, name, tx);
      const changed = config === undefined ? before.config : configToJson(config);
      const row: OverlayRow = { ...before, name, config: changed, updateTimeMs: startMs };
      await tx.table(overlayKind).replace(row);
      return overlayToProto(row);
    },

    async deleteOverlay({ uid }, { tx }) {
      await getRow(tx, overlays, uid);
      if (await countRows(tx.table(overlayBindingKind), "overlayUid", uid))
        throw failedPrecondition("RESOURCE_IN_USE", "cannot delete overlay that is bound to a repo");
      await tx.table(overlayKind).delete(uid);
      return {};
    },
  };
  const bodies = defineBodies(
    { message: OverlaySchema, readers: [OverlaysService.method.listOverlays] },
    findsResource(overlays, overlayToProto),
  );
  return serve(OverlaysService, handlers, {
    createOverlay: { maxRequestBytes: MAX_REPO_REQUEST, body: bodies.created },
    updateOverlay: { maxRequestBytes: MAX_REPO_REQUEST, body: bodies.updated },
    deleteOverlay: { body: bodies.deleted },
  });
}

async function requireFreeName(groupUid: string, name: string, tx: Tx): Promise<void> {
  const existing = await tx.table(overlayKind).findByName(groupUid, name);
  if (existing !== undefined) throw alreadyExists(overlays, existing.uid);
}
