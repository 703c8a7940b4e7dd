// Keeps mounted services apart from the platform: neither their RPC paths nor their HTTP rules may match requests that
// the platform handles.
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "#gen/health/v1/health_pb.js";
import type { MethodTable } from "../pipeline/method-table.js";
import type { MountedEntries } from "../pipeline/mount.js";
import type { Mount } from "../pipeline/mount-options.js";
import type { HttpBinding } from "../transport/http/http-binding.js";
import { parseTemplate, type Segment, type Template } from "../transport/http/http-rule.js";

// Services beside the method table.
const otherServices = [Health, ServerReflection, ServerReflectionAlpha];

/**
 * Adds the methods of mounted services to the method table.
 *
 * @throws TypeError when a service is served already
 */
export function addMounts(methods: MethodTable, mounts: readonly Mount[]): MethodTable {
  const all = new Map(methods);
  const services = [...otherServices, ...[...methods.values()].map(({ published }) => published.parent)];
  const served = new Set(services.map(({ typeName }) => typeName));
  for (const { desc, entries } of mounts as readonly MountedEntries[]) {
    if (served.has(desc.typeName)) throw new TypeError(`${desc.typeName} is served already, so it cannot be mounted`);
    served.add(desc.typeName);
    for (const entry of entries) all.set(entry.path, entry);
  }
  return all;
}

/**
 * Asserts that no route of a mounted service matches requests that a route of the platform handles, or only requests
 * for fixed paths, which never reach it.
 *
 * @param fixedPaths paths that are handled before routes are matched; one may end in `/*`, for all paths with this
 * prefix
 * @throws TypeError naming both routes
 */
export function assertNothingShadowed(routes: readonly HttpBinding[], fixedPaths: readonly string[]): void {
  const mounted = routes.filter(({ entry }) => entry.mounted);
  if (mounted.length === 0) return;
  const own = routes.filter(({ entry }) => !entry.mounted);
  const fixed = fixedPaths.map((path) => parseTemplate(path.replace(/\/$/, "").replace(/\/\*$/, "/**"), path));
  for (const route of mounted) {
    const path = fixed.find((template) => hasPrecedence(route.template, template));
    if (path !== undefined) throw new TypeError(`${textOf(route)}: ${path.text} is a path of Arbor's own`);
    const shadowed = own.find((other) => takesRequestsOf(route, other));
    if (shadowed !== undefined) throw new TypeError(`${textOf(route)} would take requests of ${textOf(shadowed)}`);
  }
}

function textOf({ name, method, template }: HttpBinding): string {
  return `${name}: ${method} ${template.text}`;
}

// Whatever their templates, routes for a method are matched before those for any, and those for HEAD before those for
// GET.
function takesRequestsOf(route: HttpBinding, other: HttpBinding): boolean {
  if (other.template.trailingSlash) return false;
  if (route.method === other.method) return hasPrecedence(route.template, other.template);
  const isMatchedFirst = other.method === "*" || (route.method === "HEAD" && other.method === "GET");
  return isMatchedFirst && route.method !== "*" && overlap(route.template.segments, other.template.segments);
}

// Whether `one` gets requests that `other` matches as well, by the precedence of route-table.
function hasPrecedence(one: Template, other: Template): boolean {
  if (!overlap(one.segments, other.segments)) return false;
  if (one.verb === other.verb) return compareShapes(one.segments, other.segments) <= 0;
  if (one.verb === undefined) return false;
  // What is a verb for `one` may be a part of a name for `other`.
  const rest = other.verb === undefined || one.verb.endsWith(`:${other.verb}`);
  return rest && other.segments.at(-1)?.kind !== "literal";
}

function overlap(one: readonly Segment[], other: readonly Segment[]): boolean {
  const [first, ...rest] = one;
  const [otherFirst, ...otherRest] = other;
  if (first?.kind === "star2") return overlap(rest, other) || (other.length > 0 && overlap(one, otherRest));
  if (otherFirst?.kind === "star2") return overlap(other, one);
  if (first === undefined || otherFirst === undefined) return first === otherFirst;
  const isSame = first.kind !== "literal" || otherFirst.kind !== "literal" || first.text === otherFirst.text;
  return isSame && overlap(rest, otherRest);
}

const RANK = { literal: 0, star: 1, star2: 2 };

// Negative when `one` has precedence, zero when both match the same paths.
function compareShapes(one: readonly Segment[], other: readonly Segment[]): number {
  for (let i = 0; i < one.length && i < other.length; i++) {
    const difference = RANK[one[i]?.kind ?? "star2"] - RANK[other[i]?.kind ?? "star2"];
    if (difference !== 0) return difference;
  }
  const more = other.length - one.length;
  const next = more > 0 ? other[one.length] : one[other.length];
  // A path that ends before the `**` of one route belongs to the route that ends there.
  return next?.kind === "star2" ? -more : more;
}
