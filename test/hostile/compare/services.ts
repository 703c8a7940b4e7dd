// Every service that is served, with those that are beside the method table and the one that a program mounts.
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { TokensService } from "#gen/arbor/tokens/v1/tokens_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "#gen/health/v1/health_pb.js";
import { services as platformServices } from "../../contract/iam-methods.js";
import { LibraryService } from "../../support/library/library_pb.js";

const own: readonly DescService[] = [
  ...platformServices.map(({ desc }) => desc),
  ...[AccessService, AuditService, BindingsService, EventsService, SessionsService, TokensService],
  ...[Auth, SecurityTokenService],
];

/** Health and reflection, which have no place in the method table. */
export const besideServices: readonly DescService[] = [Health, ServerReflection, ServerReflectionAlpha];

/** The service that a program mounts. */
export const mountedService: DescService = LibraryService;

/** All of them. */
export const services: readonly DescService[] = [...own, ...besideServices, mountedService];

/** The methods of the table with one response. */
export const unaryMethods: readonly DescMethod[] = own
  .flatMap(({ methods }) => methods)
  .filter(({ methodKind }) => methodKind === "unary");

/** The method that is served at a path of RPC. */
export function findRpc(path: string): DescMethod | undefined {
  return byPath.get(path.split("?")[0] ?? "");
}

/** The path of a method. */
export function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

const byPath = new Map(services.flatMap(({ methods }) => methods).map((method) => [pathOf(method), method]));
