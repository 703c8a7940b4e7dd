// Which operations of the document do what they say here: some say that they do nothing.
import type { DescMethod } from "@bufbuild/protobuf";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import type { PlacedOperation } from "../support/openapi/document.js";
import { isUnavailable, methods, nameOf } from "./iam-methods.js";

// The configuration of an image lies in the registry, and none is set up here.
const OF_THE_REGISTRY: ReadonlySet<string> = new Set(["registry.Registry.GetImageConfig"]);

/** The method of an operation. */
export function findMethod({ operationId, tags }: Pick<PlacedOperation, "operationId" | "tags">) {
  return [...methods, ...otherMethods].find(
    ({ name, parent }) => tags.includes(parent.typeName) && new RegExp(`_${name}(_[0-9]+)?$`).test(operationId),
  );
}

const otherMethods: readonly DescMethod[] = [
  SecurityTokenService,
  Auth,
  AccessService,
  AuditService,
  EventsService,
  SessionsService,
].flatMap((service) => service.methods);

/** The HTTP status that everybody is refused with who may call an operation; undefined for one that is served. */
export function findUnservedStatus({
  operationId,
  tags,
}: Pick<PlacedOperation, "operationId" | "tags">): number | undefined {
  const method = methods.find(
    ({ name, parent }) => tags.includes(parent.typeName) && new RegExp(`_${name}(_[0-9]+)?$`).test(operationId),
  );
  if (method === undefined) return undefined;
  if (OF_THE_REGISTRY.has(nameOf(method))) return 400;
  return isUnavailable(method) ? 501 : undefined;
}
