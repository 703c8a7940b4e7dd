// The handlers of IdentityProvidersService in version 2beta1.
import { equals } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import {
  type DeleteIdentityProviderRequest,
  GenerateScimTokenResponseSchema,
  type IdentityProvider_OIDC,
  IdentityProvider_OIDCSchema,
  IdentityProviderSchema,
  IdentityProvidersService,
  RegenerateScimTokenResponseSchema,
  RevokeScimTokenResponseSchema,
  SetScimEnabledResponseSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { defineBodies } from "../../pipeline/body.js";
import type { CallContext, UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withPreparation } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { cascadeDelete, deleteInParts, guardDelete } from "../../pipeline/resource/delete.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { findsResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { requireSecureIssuer } from "../../pipeline/resource/rules.js";
import { groupMappingKind } from "../../store/iam/group-mappings.js";
import { identityKind } from "../../store/iam/identities.js";
import {
  buildDefaultRole,
  type IdentityProviderRow,
  identityProviderKind,
} from "../../store/iam/identity-providers.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import { scimUserKind } from "../../store/iam/scim-users.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import { deleteSomeGroups } from "../directories/work.js";
import { groups } from "../groups/group.js";
import { finishDeletions } from "../identities/deletion.js";
import { formatActorName, identities } from "../identities/identity.js";
import type { IdentityDeps } from "../identities/identity-v2beta1.js";
import { requireGrantable, requireOwner, requireOwnersRights } from "../rights.js";
import { requireAvailableRole } from "../roles/role.js";
import {
  formatSecretContext,
  identityProviders,
  identityProviderToProto,
  newIdentityProviders,
  noScim,
  oidcFromJson,
  oidcToJson,
} from "./identity-provider.js";
import { createScimHandlers } from "./scim.js";

export interface IdentityProviderDeps extends ResourceDeps, IdentityDeps {
  /** Encrypts a secret for storage in this transaction; it opens only with the same context. */
  readonly seal: (tx: Tx, secret: Buffer, context: string) => Promise<string>;
  /** The base URL of the service. */
  readonly baseUrl: string;
}

export function identityProvidersV2beta1(deps: IdentityProviderDeps) {
  const { listResources, definitions, ids, seal, trustedIssuers, store, baseUrl } = deps;
  const toProto = (row: IdentityProviderRow, { startMs: nowMs }: CallContext) =>
    identityProviderToProto(row, { nowMs, baseUrl });
  const sealSecret = async (tx: Tx, uid: string, secret: string) =>
    secret === "" ? "" : seal(tx, Buffer.from(secret), formatSecretContext(uid));

  const handlers: Handlers<typeof IdentityProvidersService> = {
    async getIdentityProvider({ uid }, call) {
      return toProto(await getRow(call.tx, identityProviders, uid), call);
    },

    async listIdentityProviders(request, call) {
      // As published, lists have no SCIM.
      const toListed = (row: IdentityProviderRow) => ({ ...toProto(row, call), scim: undefined });
      const { resources, ...page } = await listResources(call, identityProviders, request, toListed);
      return { identityProviders: resources, ...page };
    },

    async createIdentityProvider({ parent, identityProvider }, call) {
      const { tx, caller, startMs } = call;
      const group = await getRow(tx, groups, parent);
      const { oidc: given, ...values } = buildValues(newIdentityProviders, identityProvider);
      if (group.parentUid !== null) throw invalidArgument({ field: "parent", rule: "must be a root group" });
      const oidc = given as IdentityProvider_OIDC;
      requireSecureIssuer(oidc.issuer, "oidc", trustedIssuers);
      requireProof(oidc, oidc.clientSecret);
      const role = await requireAvailableRole(values.defaultRole, parent, tx, "defaultRole");
      requireGrantable(caller, role, parent);
      const uid = ids.newUid(parent);
      const row: IdentityProviderRow = {
        uid,
        groupUid: parent,
        ...values,
        oidc: oidcToJson(oidc),
        sealedSecret: await sealSecret(tx, uid, oidc.clientSecret),
        lacksDefaultRole: false,
        scim: noScim,
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.table(identityProviderKind).insert(row);
      return toProto(row, call);
    },

    async updateIdentityProvider({ identityProvider, updateMask }, call) {
      const { tx, caller, startMs } = call;
      const before = await getRow(tx, identityProviders, identityProvider?.uid ?? "");
      const view = toProto(before, call);
      const patch = buildPatch(identityProviders, identityProvider, updateMask, view);
      if (Object.keys(patch).length === 0) return view;
      const { oidc: changed, defaultRole = view.defaultRole, ...others } = patch;
      const row = { ...before, ...others, updateTimeMs: startMs };
      if (defaultRole !== view.defaultRole) {
        const { groupUid } = before;
        if (defaultRole === "") requireScim(before);
        else requireGrantable(caller, await requireAvailableRole(defaultRole, groupUid, tx, "defaultRole"), groupUid);
        Object.assign(row, buildDefaultRole(defaultRole));
      }
      const oidc = changed as IdentityProvider_OIDC | undefined;
      if (oidc && !isSame(oidc, before, updateMask)) {
        // Somebody who redirects logins could log in as any person of the provider.
        requireOwnersRights(caller, before.groupUid);
        requireSecureIssuer(oidc.issuer, "oidc", trustedIssuers);
        await requireFixedIssuer(oidc, before, tx);
        const keeps = keepsSecret(oidc, updateMask);
        if (keeps && before.sealedSecret !== "") requireSameIssuer(oidc, before);
        row.oidc = oidcToJson(oidc);
        row.sealedSecret = keeps ? before.sealedSecret : await sealSecret(tx, before.uid, oidc.clientSecret);
        requireProof(oidc, row.sealedSecret);
      }
      await tx.table(identityProviderKind).replace(row);
      return toProto(row, call);
    },

    // The people of a provider sign in through it alone, so they are deleted with it.
    deleteIdentityProvider: withPreparation({
      prepare: ({ uid }: DeleteIdentityProviderRequest, call) => deleteDependents(uid, store, call),
      async handle({ uid }: DeleteIdentityProviderRequest, call) {
        const { tx, startMs, caller } = call;
        if (caller.providerUid === uid) call.actorName = formatActorName(await getRow(tx, identities, caller.uid));
        const { groupUid } = await getRow(tx, identityProviders, uid);
        await guardDelete(definitions, identityProviders, uid, tx, startMs);
        await tx.table(identityKind).markDeletedOf(uid, startMs);
        await requireOwner(tx, groupUid);
        await cascadeDelete(definitions, identityProviders, uid, tx);
        while ((await deleteManaged(tx, uid)).length > 0);
        while ((await deleteDirectory(tx, uid)) > 0);
        await tx.table(identityProviderKind).delete(uid);
        call.finish = () => finishDeletions(store);
        return {};
      },
    }),

    ...createScimHandlers(deps),
  };
  const bodies = defineBodies(
    { message: IdentityProviderSchema, readers },
    findsResource(identityProviders, (row, call: UnaryCall) => toProto(row, call)),
  );
  return serve(IdentityProvidersService, handlers, {
    createIdentityProvider: { body: bodies.created },
    updateIdentityProvider: { body: bodies.updated },
    deleteIdentityProvider: { body: bodies.deleted },
    generateScimToken: { body: { view: { message: GenerateScimTokenResponseSchema, readers, without } } },
    regenerateScimToken: { body: { view: { message: RegenerateScimTokenResponseSchema, readers, without } } },
    revokeScimToken: { body: { view: { message: RevokeScimTokenResponseSchema, readers } } },
    setScimEnabled: { body: { view: { message: SetScimEnabledResponseSchema, readers } } },
  });
}

const readers = [IdentityProvidersService.method.listIdentityProviders] as const;
const without = ["token"];

/** How many mappings or bindings a unit of work deletes: some milliseconds on SQLite. */
const MAX_DELETED = 50;

/**
 * Deletes the mappings of a provider that is about to be deleted, the bindings that its directory manages, and the groups and people that
 * it has sent, in short units of work, unless the provider has to stay.
 *
 * @throws ApiError FAILED_PRECONDITION where its organisation would be left without an owner, DEADLINE_EXCEEDED
 */
export async function deleteDependents(
  providerUid: string,
  store: Store,
  call: Pick<CallContext, "signal" | "hasChanged">,
): Promise<true> {
  const provider = await store.read(async (tx) => {
    const row = await tx.table(identityProviderKind).find(providerUid);
    if (row !== undefined) await requireOwner(tx, row.groupUid, providerUid);
    return row;
  });
  if (provider === undefined) return true;
  let lastManaged: string | undefined;
  return deleteInParts(store, call, async (tx) => {
    const uids = await tx.table(groupMappingKind).findUidsWhere("providerUid", providerUid, MAX_DELETED);
    for (const uid of uids) await tx.table(groupMappingKind).delete(uid);
    if (uids.length > 0) return uids.length;
    const managed = await deleteManaged(tx, providerUid, lastManaged);
    lastManaged = managed.at(-1);
    return managed.length || deleteDirectory(tx, providerUid);
  });
}

// Deletes some of the bindings that a provider's directory manages. Nothing else would change them any more.
async function deleteManaged(tx: Tx, providerUid: string, after?: string): Promise<string[]> {
  const uids = await tx.table(roleBindingKind).findManaged(providerUid, MAX_DELETED, after);
  for (const uid of uids) await tx.table(roleBindingKind).delete(uid);
  return uids;
}

// Deletes some of the groups and people that a provider's directory has sent; returns how many rows. What keeps those out whom it has deleted
// is deleted last.
async function deleteDirectory(tx: Tx, providerUid: string): Promise<number> {
  const groups = await deleteSomeGroups(tx, providerUid, MAX_DELETED);
  if (groups > 0) return groups;
  const rows = await tx.table(scimUserKind).findAfter(providerUid, "", MAX_DELETED);
  for (const { uid } of rows) await tx.table(scimUserKind).delete(uid);
  return rows.length || tx.table(scimUserKind).deleteSomeFormer(providerUid, MAX_DELETED);
}

// The ids of people at one issuer mean nothing at another: whoever has such an id there could sign in as somebody else.
async function requireFixedIssuer({ issuer }: IdentityProvider_OIDC, before: IdentityProviderRow, tx: Tx) {
  if (issuer === oidcFromJson(before.oidc).issuer || !(await tx.table(scimUserKind).hasAny(before.uid))) return;
  const rule = "its directory has sent people, whose ids belong to the issuer: create another provider";
  throw failedPrecondition("ISSUER_FIXED", `cannot change the issuer of identity provider ${before.uid}: ${rule}`);
}

// With SCIM, the directory gives people their roles.
function requireScim({ scim }: IdentityProviderRow): void {
  if (!scim.enabled) throw invalidArgument({ field: "defaultRole", rule: "is required" });
}

// Without a secret or PKCE, anybody can pose as the client.
function requireProof({ pkceEnabled }: IdentityProvider_OIDC, secret: string): void {
  if (secret !== "" || pkceEnabled) return;
  throw invalidArgument({
    field: "oidc.clientSecret",
    subject: "clientSecret",
    rule: "is required unless {} is set",
    args: ["pkceEnabled"],
  });
}

// A client secret belongs to one issuer and is never sent to another.
function requireSameIssuer({ issuer }: IdentityProvider_OIDC, before: IdentityProviderRow): void {
  if (issuer === oidcFromJson(before.oidc).issuer) return;
  throw invalidArgument({
    field: "oidc.clientSecret",
    subject: "clientSecret",
    rule: "is required where the issuer changes",
  });
}

function keepsSecret({ clientSecret }: IdentityProvider_OIDC, mask: FieldMask | undefined): boolean {
  const named = mask?.paths.some((path) => path === "oidc.client_secret" || path === "oidc.clientSecret") ?? false;
  return clientSecret === "" && !named;
}

function isSame(oidc: IdentityProvider_OIDC, before: IdentityProviderRow, mask: FieldMask | undefined): boolean {
  return keepsSecret(oidc, mask) && equals(IdentityProvider_OIDCSchema, oidc, oidcFromJson(before.oidc));
}
