// Overlay bindings: the resource with the rule for its selector, and OverlayBindingsService in version 2beta1.
import { create } from "@bufbuild/protobuf";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { OverlayBindingsService as StableOverlayBindingsService } from "#gen/chainguard/platform/registry/v2/overlay_bindings_pb.js";
import {
  TagSelector_Kind as Kind,
  type OverlayBinding,
  OverlayBindingSchema,
  OverlayBindingsService,
  type TagSelector,
  TagSelector_VariantType as Variant,
} from "#gen/chainguard/platform/registry/v2beta1/overlay_bindings_pb.js";
import { alreadyExists, breakRule, failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { isUidp, lineageOf, rootOf } from "../../kernel/uidp.js";
import { bitOf } from "../../pipeline/auth/authorize.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { type FieldRule, isName, isRequiredUid } from "../../pipeline/resource/rules.js";
import {
  type HydratedOverlayBinding,
  type OverlayBindingRow,
  overlayBindingKind,
} from "../../store/registry/overlay-bindings.js";
import { type OverlayRow, overlayKind } from "../../store/registry/overlays.js";
import type { Tx } from "../../store/transaction.js";
import { hasOverlay, repos, repoToProto } from "../repos/repo.js";
import { isTagNames } from "../repos/repo-rules.js";
import { overlayToProto } from "./overlay.js";

/** The largest number of tags that a binding names. */
const MAX_TAGS = 100;

const list = [{ bit: bitOf(Capability.CAP_REGISTRY_OVERLAYS_LIST) }];

/** The rule for selectors of tags: each kind has what it needs, and nothing else. */
export const isTagSelector: FieldRule = (value, field) => {
  if (value === undefined) return breakRule(field, "is required");
  const { kind, tags, variantType } = value as TagSelector;
  if (kind === Kind.UNSPECIFIED || Kind[kind] === undefined)
    return breakRule(`${field}.kind`, "must be KIND_EXACT, KIND_ALL or KIND_VARIANT");
  if (kind !== Kind.VARIANT && variantType !== Variant.UNSPECIFIED)
    return breakRule(`${field}.variantType`, "must be unset unless the kind is KIND_VARIANT");
  if (kind !== Kind.EXACT && tags.length > 0)
    return breakRule(`${field}.tags`, "must be empty unless the kind is KIND_EXACT");
  if (kind === Kind.VARIANT && (variantType === Variant.UNSPECIFIED || Variant[variantType] === undefined))
    return breakRule(`${field}.variantType`, "must be VARIANT_TYPE_DEV for KIND_VARIANT");
  return kind === Kind.EXACT ? findTagsFault(tags, `${field}.tags`) : undefined;
};

function findTagsFault(tags: readonly string[], field: string) {
  if (tags.length === 0) return breakRule(field, "is required for KIND_EXACT");
  if (tags.length > MAX_TAGS) return breakRule(field, `must be at most ${MAX_TAGS}`);
  if (new Set(tags).size < tags.length) return breakRule(field, "must not name a tag twice");
  return isTagNames(tags, field);
}

export const overlayBindings = defineResource({
  displayName: "overlay binding",
  type: "registry.chainguard.dev/OverlayBinding",
  plural: "overlay bindings",
  message: OverlayBindingSchema,
  kind: overlayBindingKind,
  table: (tx: Tx) => {
    const table = tx.table(overlayBindingKind);
    return { find: (uid) => table.findHydrated(uid), list: (query) => table.listHydrated(query) };
  },
  parent: {
    type: repos.type,
    onDelete: { cascade: (tx, repoUid) => tx.table(overlayBindingKind).deleteOf(repoUid) },
  },
  createdBy: [createsInScope(OverlayBindingsService.method.createOverlayBinding)],
  stable: StableOverlayBindingsService,
  filters: { overlay: { column: "overlayUid", rule: isRequiredUid } },
  mutable: { tagSelector: isTagSelector },
});

/** Converts a stored binding to version 2. */
function overlayBindingToProto(row: HydratedOverlayBinding): OverlayBinding {
  const { uid, repoUid, overlay, selectorKind: kind, tags, variantType } = row;
  return create(OverlayBindingSchema, {
    ...{ uid, repo: repoUid, overlay: overlayToProto(overlay) },
    tagSelector: { kind, tags, variantType },
  });
}

/** Creates OverlayBindingsService. */
export function overlayBindingsV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  const handlers: Handlers<typeof OverlayBindingsService> = {
    getOverlayBinding: ({ uid }, { tx }) => getResource(tx, overlayBindings, uid, overlayBindingToProto),

    async listOverlayBindings(request, call) {
      const { resources, ...page } = await listResources(call, overlayBindings, request, overlayBindingToProto);
      return { overlayBindings: resources, ...page };
    },

    async createOverlayBinding({ parent, overlay: named, tagSelector }, call) {
      const { tx, startMs } = call;
      const repo = await getRow(tx, repos, parent);
      const sent = create(OverlayBindingSchema, { ...(tagSelector && { tagSelector }) });
      const selector = buildValues(overlayBindings, sent).tagSelector;
      const overlay = await getOverlay(named, repo.groupUid, call);
      if (hasOverlay(repoToProto(repo)))
        throw failedPrecondition("REPO_HAS_OVERLAY", "cannot bind an overlay to a repo with a custom overlay");
      const row: OverlayBindingRow = {
        uid: ids.newUid(parent),
        ...{ repoUid: parent, overlayUid: overlay.uid },
        ...selectorToRow(selector),
        ...{ createTimeMs: startMs, updateTimeMs: startMs },
      };
      await requireFreeSelection(row, tx);
      await tx.table(overlayBindingKind).insert(row);
      return overlayBindingToProto({ ...row, overlay });
    },

    async updateOverlayBinding({ overlayBinding, updateMask }, { tx, startMs }) {
      const before = await getRow(tx, overlayBindings, overlayBinding?.uid ?? "");
      const patch = buildPatch(overlayBindings, overlayBinding, updateMask, overlayBindingToProto(before));
      if (patch.tagSelector === undefined) return overlayBindingToProto(before);
      const { overlay, ...stored } = before;
      const row: OverlayBindingRow = { ...stored, ...selectorToRow(patch.tagSelector), updateTimeMs: startMs };
      await requireFreeSelection(row, tx);
      await tx.table(overlayBindingKind).replace(row);
      return overlayBindingToProto({ ...row, overlay });
    },

    async deleteOverlayBinding({ uid }, { tx }) {
      await getRow(tx, overlayBindings, uid);
      await tx.table(overlayBindingKind).delete(uid);
      return {};
    },
  };
  const bodies = defineBodies(
    { message: OverlayBindingSchema, readers: [OverlayBindingsService.method.listOverlayBindings] },
    findsResource(overlayBindings, overlayBindingToProto),
  );
  return serve(OverlayBindingsService, handlers, {
    createOverlayBinding: { body: bodies.created },
    updateOverlayBinding: { body: bodies.updated },
    deleteOverlayBinding: { body: bodies.deleted },
  });
}

function selectorToRow(selector: TagSelector | undefined) {
  const { kind = Kind.UNSPECIFIED, tags = [], variantType = Variant.UNSPECIFIED } = selector ?? {};
  return { selectorKind: kind, tags, variantType };
}

// The key of the stored selections decides between calls that run at the same time: the later one runs again and finds the
// binding of the earlier.
async function requireFreeSelection(row: OverlayBindingRow, tx: Tx): Promise<void> {
  const existing = await tx.table(overlayBindingKind).findConflicting(row);
  if (existing !== undefined) throw alreadyExists(overlayBindings, existing);
}

// Every cause has the same text, so that callers cannot tell whether a hidden overlay exists.
async function getOverlay(named: string, groupUid: string, call: UnaryCall): Promise<OverlayRow> {
  if (named === "") throw invalidArgument({ field: "overlay", rule: "is required" });
  const found = isUidp(named) ? await findByUid(named, groupUid, call) : undefined;
  const overlay = found ?? (await findByName(named, groupUid, call));
  if (overlay !== undefined) return overlay;
  const rule =
    "must be the uid of an overlay of the organisation, or the name of one in the group of the repo or above it";
  throw invalidArgument({ field: "overlay", rule: `${rule}, which the caller may list` });
}

async function findByUid(uid: string, groupUid: string, call: UnaryCall): Promise<OverlayRow | undefined> {
  if (rootOf(uid) !== rootOf(groupUid) || !(await call.callerAt(uid)).holds(list, uid)) return undefined;
  return call.tx.table(overlayKind).find(uid);
}

// The nearest group that has one counts.
async function findByName(name: string, groupUid: string, { tx, caller }: UnaryCall): Promise<OverlayRow | undefined> {
  if (isName(name, "overlay") !== undefined) return undefined;
  for (const uid of lineageOf(groupUid).reverse()) {
    const found = caller.holds(list, uid) ? await tx.table(overlayKind).findByName(uid, name) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
