// Identities, version 1: a view of IdentitiesService.
import { Identities } from "#gen/chainguard/platform/iam/identity_pb.js";
import type { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { listInChunks, type ServedService, serve } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { rowsInParts } from "../../pipeline/resource/whole-list.js";
import { identityView } from "./identity.js";
import { identitySent, identityV1 } from "./identity-v1-view.js";

const relationships = ["claim_match", "static_keys", "aws_identity", "service_principal"];
const whole = { paths: ["name", "description", ...relationships] };
const names = { uid: "id", parent: "parentId", staticKeys: "static", expirationTime: "expiration" };

/** Identities, ready to be served. */
export function identitiesV1(served: ServedService<typeof IdentitiesService>) {
  const v2 = operationsOf(served, names);
  return serve(Identities, {
    create: async ({ parentId, identity }, call) =>
      identityV1(await v2.createIdentity({ parent: parentId, identity: identitySent(identity) }, call)),

    update: async (identity, call) =>
      identityV1(await v2.updateIdentity({ identity: identitySent(identity), updateMask: whole }, call)),

    list: listInChunks(
      rowsInParts(
        (tx) => tx.identities,
        (row) => identityV1(identityView(row)),
      ),
    ),

    async lookup({ issuer, subject }, call) {
      const { uid } = await v2.lookupIdentity({ issuer, subject }, call);
      return { id: uid };
    },

    delete: ({ id }, call) => v2.deleteIdentity({ uid: id }, call),
  });
}
