// The types for programs that mount services. They import nothing of the server, so that they compile where its
// libraries have no types.
import type { DescMethod, DescService, Registry } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey } from "@connectrpc/connect";
import type { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import type { Principal } from "../kernel/principal.js";

/**
 * Who may call a method: everybody; every identity whose token is valid; or who holds all of `capabilities` at the
 * group that a field of the request names. `scope` is the path of that field by its names in the proto, such as
 * `shelf.group`.
 */
export type MountAccess =
  | "public"
  | "authenticated"
  | { readonly capabilities: readonly [Capability, ...Capability[]]; readonly scope: string };

/** An HTTP rule in the form that google.api.HttpRule has in JSON. */
export interface MountHttpRule {
  readonly get?: string;
  readonly put?: string;
  readonly post?: string;
  readonly delete?: string;
  readonly patch?: string;
  readonly custom?: { readonly kind: string; readonly path: string };
  readonly body?: string;
  readonly responseBody?: string;
  readonly additionalBindings?: readonly Omit<MountHttpRule, "additionalBindings">[];
}

/** How to mount a service. Methods have connect's local names, such as `getBook`. */
export interface MountOptions<S extends DescService = DescService> {
  /** For all methods, or for each by its name; without it each method must have the option of Arbor's own protos. */
  readonly access?: MountAccess | { readonly [K in keyof S["method"]]: MountAccess };
  /** In place of google.api.http; null for a method that is not to be served as JSON over HTTP. */
  readonly http?: { readonly [K in keyof S["method"]]?: MountHttpRule | null };
  /** The types that may stand in an Any, besides those of the service's own files and what they import. */
  readonly registry?: Registry;
  /** The largest request in bytes: 256 KiB unless given, 16 KiB where everybody may call; at most 4 MiB. */
  readonly maxRequestBytes?: number;
}

/** A service that is ready to be served beside the platform's own; `mount` makes it. */
export interface Mount {
  readonly desc: DescService;
  /** Its methods with their RPC paths, such as `/package.Service/Method`. */
  readonly entries: readonly { readonly desc: DescMethod; readonly path: string }[];
}

/**
 * The authenticated caller among the context values of a call, for handlers that know connect's `HandlerContext` alone;
 * undefined for methods that everybody may call.
 */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined, {
  description: "the authenticated caller",
});
