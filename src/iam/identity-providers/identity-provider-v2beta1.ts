// The handlers of IdentityProvidersService in version 2beta1.
import { equals } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import {
  type IdentityProvider_OIDC,
  IdentityProvider_OIDCSchema,
  IdentityProvidersService,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { invalidArgument, notFound } from "../../kernel/errors.js";
import { type Handlers, serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { IdentityProviderRow, Tx } from "../../store/port.js";
import { requireParentGroup } from "../groups/parent-group.js";
import type { IamDeps } from "../iam-deps.js";
import { requireSecureIssuer } from "../issuer-url.js";
import { deletePeopleOf } from "../people/registration.js";
import { requireGrantable, requireOwnersRights } from "../rights.js";
import { requireAvailableRole } from "../roles/available-role.js";
import { identityProviders, identityProviderView, noScim, oidcFromJson, oidcToJson } from "./identity-provider.js";
import { scimHandlers } from "./scim.js";

/** IdentityProvidersService, ready to be served. */
export function identityProvidersV2beta1({ tokens, ids, seal, trustedIssuers }: IamDeps) {
  const sealed = (uid: string, secret: string) =>
    secret === "" ? "" : seal(Buffer.from(secret), `client secret ${uid}`);

  const handlers: Handlers<typeof IdentityProvidersService> = {
    async getIdentityProvider({ uid }, { tx, startMs }) {
      return identityProviderView(await found(uid, tx), startMs);
    },

    async listIdentityProviders(request, call) {
      const { tx, startMs } = call;
      const context = {
        method: "ListIdentityProviders",
        tokens,
        nowMs: startMs,
        visible: await call.visibleGroups(request.uidp),
      };
      const list = listQueryOf(identityProviders, request, context);
      const page = await tx.identityProviders.list(list.query);
      const views = page.rows.map((row) => identityProviderView(row, startMs));
      return { identityProviders: views, ...list.envelope(page) };
    },

    async createIdentityProvider({ parent, identityProvider }, call) {
      const { tx, caller, startMs } = call;
      const group = await requireParentGroup(parent, call);
      const { oidc: given, ...values } = valuesOf(identityProviders, identityProvider);
      if (group.parentUid !== null)
        throw invalidArgument({ field: "parent", description: "parent must be a root group" });
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
        sealedSecret: sealed(uid, oidc.clientSecret),
        scim: noScim,
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.identityProviders.insert(row);
      return identityProviderView(row, startMs);
    },

    async updateIdentityProvider({ identityProvider, updateMask }, { tx, caller, startMs }) {
      const before = await found(identityProvider?.uid ?? "", tx);
      const view = identityProviderView(before, startMs);
      const { oidc: changed, ...patch } = patchOf(identityProviders, identityProvider, updateMask, view);
      if (patch.defaultRole !== undefined && patch.defaultRole !== before.defaultRole) {
        const role = await requireAvailableRole(patch.defaultRole, before.groupUid, tx, "defaultRole");
        requireGrantable(caller, role, before.groupUid);
      }
      const row = { ...before, ...patch, updateTimeMs: startMs };
      const oidc = changed as IdentityProvider_OIDC | undefined;
      if (oidc && !isSame(oidc, before, updateMask)) {
        // Whoever redirects logins could become anybody who logs in there.
        requireOwnersRights(caller, before.groupUid);
        requireSecureIssuer(oidc.issuer, "oidc", trustedIssuers);
        if (oidc.correlationRule !== oidcFromJson(before.oidc).correlationRule) throw fixedRule();
        const keeps = keepsSecret(oidc, updateMask);
        if (keeps && before.sealedSecret !== "") requireSameIssuer(oidc, before);
        row.oidc = oidcToJson(oidc);
        row.sealedSecret = keeps ? before.sealedSecret : sealed(before.uid, oidc.clientSecret);
        requireProof(oidc, row.sealedSecret);
      }
      await tx.identityProviders.replace(row);
      return identityProviderView(row, startMs);
    },

    // Nobody can sign in through it any more, so those who did are not known any more either.
    async deleteIdentityProvider({ uid }, { tx }) {
      await found(uid, tx);
      await deletePeopleOf(tx, uid);
      for (const mapping of await tx.groupMappings.uidsWhere("providerUid", uid))
        await tx.groupMappings.delete(mapping);
      await tx.identityProviders.delete(uid);
      return {};
    },

    ...scimHandlers,
  };
  return serve(IdentityProvidersService, handlers);
}

async function found(uid: string, tx: Tx): Promise<IdentityProviderRow> {
  const row = await tx.identityProviders.get(uid);
  if (row === undefined) throw notFound(identityProviders, uid);
  return row;
}

// A client that can prove itself by nothing is one that anybody can pose as.
function requireProof({ pkceEnabled }: IdentityProvider_OIDC, secret: string): void {
  if (secret !== "" || pkceEnabled) return;
  throw invalidArgument({
    field: "oidc.clientSecret",
    description: "clientSecret is required unless pkceEnabled is set",
  });
}

// A secret is for the one it was agreed with: no other is sent it.
function requireSameIssuer({ issuer }: IdentityProvider_OIDC, before: IdentityProviderRow): void {
  if (issuer === oidcFromJson(before.oidc).issuer) return;
  throw invalidArgument({
    field: "oidc.clientSecret",
    description: "clientSecret is required where the issuer changes",
  });
}

function keepsSecret({ clientSecret }: IdentityProvider_OIDC, mask: FieldMask | undefined): boolean {
  const named = mask?.paths.some((path) => path === "oidc.client_secret" || path === "oidc.clientSecret") ?? false;
  return clientSecret === "" && !named;
}

function isSame(oidc: IdentityProvider_OIDC, before: IdentityProviderRow, mask: FieldMask | undefined): boolean {
  return keepsSecret(oidc, mask) && equals(IdentityProvider_OIDCSchema, oidc, oidcFromJson(before.oidc));
}

function fixedRule() {
  return invalidArgument({ field: "oidc.correlationRule", description: "correlationRule cannot change" });
}
