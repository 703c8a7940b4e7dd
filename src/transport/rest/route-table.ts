// Finds the route of a request. Routes lie in one trie per HTTP method and verb;
// a node is reached in one way only, so a lookup visits each at most once and no
// path makes it slow. Which of several matching routes wins is decided by their
// shape alone, never by the order of registration: leftmost literal before `*`
// before `**`, then more segments, then a verb before none.
import { normalLiteral, type Segment, type Template } from "../http/http-rule.js";
import { captureOf, cutPath, newRequestPath, type RequestPath, segmentKey } from "./request-path.js";

/** What to enter into the table. */
export interface RouteInput<T> {
  /** The HTTP method; `*` for any that no other route of the same path has. */
  readonly method: string;
  readonly template: Template;
  /** What a lookup returns. */
  readonly target: T;
  /** What to call the route in errors at boot. */
  readonly name: string;
}

/** A route that was found. */
export interface RouteMatch<T> {
  readonly target: T;
  /** The decoded text of each variable, in the order of the template. */
  readonly captures: readonly string[];
}

/** Finds routes; see {@link createRouteTable}. */
export interface RouteTable<T> {
  /**
   * The route for a path without its query; undefined when none has this method.
   *
   * @throws ApiError INVALID_ARGUMENT for a malformed path.
   */
  find(method: string, path: string): RouteMatch<T> | undefined;

  /** The methods that the path has routes for, sorted, as in an Allow header; undefined when none. */
  allowed(path: string): string | undefined;
}

interface Leaf<T> {
  readonly input: RouteInput<T>;
  readonly tail: readonly Segment[];
  /** How many segments `**` takes at least. */
  readonly least: number;
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  star: Node<T> | undefined;
  end: Leaf<T> | undefined;
  readonly deep: Leaf<T>[];
}

interface MethodRoutes<T> {
  readonly plain: Node<T>;
  /** The routes of paths that end in a slash. */
  readonly slash: Node<T>;
  readonly verbs: Map<string, Node<T>>;
}

const COLON = 58;
// Of a verb as sent, with its colon; a bound on what has to be looked at.
const MAX_VERB_LENGTH = 128;
const newNode = <T>(): Node<T> => ({ literals: new Map(), star: undefined, end: undefined, deep: [] });
const newRoutes = <T>(): MethodRoutes<T> => ({ plain: newNode(), slash: newNode(), verbs: new Map() });

/**
 * Builds the table.
 *
 * @throws TypeError at boot when two routes of one method have the same shape, or when a template
 * matches paths of the form of an RPC path, `/package.Service/Method`.
 */
export function createRouteTable<T>(inputs: Iterable<RouteInput<T>>): RouteTable<T> {
  const methods = new Map<string, MethodRoutes<T>>();
  for (const input of inputs) {
    refuseRpcShape(input);
    const routes = methods.get(input.method) ?? newRoutes<T>();
    methods.set(input.method, routes);
    enter(routes, input);
  }

  const path = newRequestPath();

  const search = (method: string): RouteMatch<T> | undefined => {
    const routes = methods.get(method);
    if (routes === undefined) return undefined;
    const leaf = path.trailingSlash
      ? walk(routes.slash, path, 0)
      : ((routes.verbs.size > 0 ? walkVerb(routes, path) : undefined) ?? walk(routes.plain, path, 0));
    if (leaf === undefined) return undefined;
    const captures = capturesOf(leaf, path);
    // A verb was cut off the last segment: the next search needs it whole.
    path.ends[path.count - 1] = path.raw.length - Number(path.trailingSlash);
    return { target: leaf.input.target, captures };
  };

  return {
    find(method, raw) {
      cutPath(raw, path);
      if (path.emptyInside) return undefined;
      return search(method) ?? (method === "HEAD" ? search("GET") : undefined) ?? search("*");
    },
    allowed(raw) {
      cutPath(raw, path);
      if (path.emptyInside) return undefined;
      const found = new Set<string>();
      for (const method of methods.keys()) {
        if (search(method) === undefined) continue;
        if (method !== "*") found.add(method);
        if (method === "GET") found.add("HEAD");
        found.add("OPTIONS");
      }
      return found.size === 0 ? undefined : [...found].sort().join(", ");
    },
  };
}

function enter<T>(routes: MethodRoutes<T>, input: RouteInput<T>): void {
  const { segments, star2, star2Captured, verb, trailingSlash } = input.template;
  let node = trailingSlash ? routes.slash : routes.plain;
  if (verb !== undefined) {
    node = routes.verbs.get(verb) ?? newNode<T>();
    routes.verbs.set(verb, node);
  }
  for (const segment of star2 < 0 ? segments : segments.slice(0, star2)) {
    if (segment.kind === "literal") {
      const next: Node<T> = node.literals.get(segment.text) ?? newNode<T>();
      node.literals.set(segment.text, next);
      node = next;
    } else {
      node.star ??= newNode<T>();
      node = node.star;
    }
  }
  const tail = star2 < 0 ? [] : segments.slice(star2 + 1);
  const leaf: Leaf<T> = { input, tail, least: star2Captured ? 1 : 0 };
  const twin =
    star2 < 0
      ? node.end
      : node.deep.find((other) => compareTails(other.tail, tail) === 0 && sameWords(other.tail, tail));
  if (twin !== undefined) {
    throw new TypeError(
      `${input.name} (${input.method} ${input.template.text}) and ` +
        `${twin.input.name} (${input.method} ${twin.input.template.text}) match the same paths`,
    );
  }
  if (star2 < 0) {
    node.end = leaf;
  } else {
    node.deep.push(leaf);
    node.deep.sort((a, b) => compareTails(a.tail, b.tail));
  }
}

function compareTails(a: readonly Segment[], b: readonly Segment[]): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = Number(a[i]?.kind === "star") - Number(b[i]?.kind === "star");
    if (difference !== 0) return difference;
  }
  return b.length - a.length;
}

function sameWords(a: readonly Segment[], b: readonly Segment[]): boolean {
  return a.every((segment, i) => {
    const other = b[i];
    return segment.kind !== "literal" || (other?.kind === "literal" && other.text === segment.text);
  });
}

function walk<T>(node: Node<T>, path: RequestPath, index: number): Leaf<T> | undefined {
  if (index === path.count) {
    if (node.end !== undefined) return node.end;
  } else {
    if (node.literals.size > 0) {
      const next = node.literals.get(segmentKey(path, index));
      const found = next && walk(next, path, index + 1);
      if (found !== undefined) return found;
    }
    if (node.star !== undefined) {
      const found = walk(node.star, path, index + 1);
      if (found !== undefined) return found;
    }
  }
  for (const leaf of node.deep) {
    if (path.count - index >= leaf.tail.length + leaf.least && tailMatches(leaf.tail, path)) return leaf;
  }
  return undefined;
}

function tailMatches(tail: readonly Segment[], path: RequestPath): boolean {
  const offset = path.count - tail.length;
  for (let i = 0; i < tail.length; i++) {
    const segment = tail[i];
    if (segment?.kind === "literal" && segmentKey(path, offset + i) !== segment.text) return false;
  }
  return true;
}

// Tries the text after the last colon of the last segment as a verb. On success the path stays
// without it until the captures have been taken.
function walkVerb<T>(routes: MethodRoutes<T>, path: RequestPath): Leaf<T> | undefined {
  const last = path.count - 1;
  const start = path.starts[last] ?? 0;
  const end = path.ends[last] ?? 0;
  let colon = end - 1;
  while (colon > start && path.raw.charCodeAt(colon) !== COLON) colon--;
  if (colon <= start || end - colon > MAX_VERB_LENGTH) return undefined;
  const text = path.raw.slice(colon + 1, end);
  const node = routes.verbs.get(path.escaped ? normalLiteral(text) : text);
  if (node === undefined) return undefined;
  path.ends[last] = colon;
  const leaf = walk(node, path, 0);
  if (leaf === undefined) path.ends[last] = end;
  return leaf;
}

function capturesOf<T>(leaf: Leaf<T>, path: RequestPath): string[] {
  const { segments, variables, star2 } = leaf.input.template;
  const extra = path.count - segments.length;
  const captures: string[] = [];
  for (const { first, last } of variables) {
    const from = star2 >= 0 && first > star2 ? first + extra : first;
    const to = star2 >= 0 && last >= star2 ? last + extra : last;
    captures.push(captureOf(path, from, to));
  }
  return captures;
}

const PACKAGE_AND_SERVICE = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/;

// RPC paths are answered before any route is looked for, so such a route would be dead or, worse,
// depend on which services exist.
function refuseRpcShape<T>({ template, name }: RouteInput<T>): void {
  const { segments, star2, star2Captured, verb } = template;
  if (verb !== undefined) return;
  const fixed = star2 < 0 ? segments.length : segments.length - (star2Captured ? 0 : 1);
  if (star2 < 0 ? fixed !== 2 : fixed > 2) return;
  const first = segments[0];
  if (first?.kind === "literal" && !PACKAGE_AND_SERVICE.test(first.text)) return;
  if (star2 !== 0) {
    const second = segments[1];
    if (second?.kind === "literal" && !/^[A-Za-z_]\w*$/.test(second.text)) return;
  }
  throw new TypeError(`${name}: path template "${template.text}" matches paths of the form /package.Service/Method`);
}
