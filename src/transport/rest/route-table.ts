// Finds the route of a request. Routes are in one trie per HTTP method and verb. A lookup visits each node at most
// once, so no path makes it slow. Precedence depends on the templates only, not on the order of registration: the
// leftmost literal before `*` before `**`, then more segments. Routes with a verb come before those without, and longer
// verbs before shorter ones.
import { normalizeLiteral, type Segment, type Template } from "../http/http-rule.js";
import {
  captureOf,
  createRequestPath,
  type RequestPath,
  rejectDotSegment,
  segmentKey,
  splitPath,
} from "./request-path.js";

/** A route to add to the table. */
export interface RouteInput<T> {
  /** The HTTP method; `*` for any that no other route of the same path has. */
  readonly method: string;
  readonly template: Template;
  /** The value that a lookup returns. */
  readonly target: T;
  /** The name of the route in errors at start. */
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
   * Finds the route for a path without its query; undefined when there is none for this method.
   *
   * @throws ApiError INVALID_ARGUMENT for a malformed path
   */
  find(method: string, path: string): RouteMatch<T> | undefined;

  /** The methods that the path has routes for, sorted, as in an Allow header; undefined when none. */
  methodsAt(path: string): string | undefined;
}

interface Leaf<T> {
  readonly input: RouteInput<T>;
  readonly tail: readonly Segment[];
  /** The least number of segments that `**` matches. */
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
  /** Routes of paths that end in a slash. */
  readonly slash: Node<T>;
  readonly verbs: Map<string, Node<T>>;
}

const COLON = 58;
const PERCENT = 37;
// The longest verb as sent, with its colon, which bounds the search.
const MAX_VERB_LENGTH = 128;
const newNode = <T>(): Node<T> => ({ literals: new Map(), star: undefined, end: undefined, deep: [] });
const newRoutes = <T>(): MethodRoutes<T> => ({ plain: newNode(), slash: newNode(), verbs: new Map() });

/**
 * Builds the table.
 *
 * @throws TypeError when two routes of one method match the same paths
 */
export function createRouteTable<T>(inputs: Iterable<RouteInput<T>>): RouteTable<T> {
  const methods = new Map<string, MethodRoutes<T>>();
  for (const input of inputs) {
    const routes = methods.get(input.method) ?? newRoutes<T>();
    methods.set(input.method, routes);
    addRoute(routes, input);
  }

  const path = createRequestPath();

  const search = (method: string): RouteMatch<T> | undefined => {
    const routes = methods.get(method);
    if (routes === undefined) return undefined;
    const leaf = path.trailingSlash
      ? walk(routes.slash, path, 0)
      : ((routes.verbs.size > 0 ? walkVerb(routes, path) : undefined) ?? walk(routes.plain, path, 0));
    if (leaf === undefined) return undefined;
    const captures = capturesOf(leaf, path);
    // The search has cut a verb off the last segment; the next search needs the whole segment.
    path.ends[path.count - 1] = path.raw.length - Number(path.trailingSlash);
    return { target: leaf.input.target, captures };
  };

  return {
    find(method, raw) {
      splitPath(raw, path);
      if (path.emptyInside) return undefined;
      return search(method) ?? (method === "HEAD" ? search("GET") : undefined) ?? search("*");
    },
    methodsAt(raw) {
      splitPath(raw, path);
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

function addRoute<T>(routes: MethodRoutes<T>, input: RouteInput<T>): void {
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
      : node.deep.find((other) => compareTails(other.tail, tail) === 0 && hasSameLiterals(other.tail, tail));
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

function hasSameLiterals(a: readonly Segment[], b: readonly Segment[]): boolean {
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

// Tries the text after each colon of the last segment as a verb, the longest first, because a verb may contain colons.
// An escaped colon counts as well, because many clients escape it. On success the verb stays cut off until the captures
// have been read.
function walkVerb<T>(routes: MethodRoutes<T>, path: RequestPath): Leaf<T> | undefined {
  const last = path.count - 1;
  const start = path.starts[last] ?? 0;
  const end = path.ends[last] ?? 0;
  const from = Math.max(start + 1, end - MAX_VERB_LENGTH);
  if (!path.escaped && path.raw.indexOf(":", from) < 0) return undefined;
  for (let colon = from; colon < end; colon++) {
    const length = separatorLength(path.raw, colon);
    if (length === 0) continue;
    const text = path.raw.slice(colon + length, end);
    const node = routes.verbs.get(path.escaped ? normalizeLiteral(text) : text);
    if (node === undefined) continue;
    path.ends[last] = colon;
    const leaf = walk(node, path, 0);
    if (leaf !== undefined) {
      rejectDotSegment(segmentKey(path, last));
      return leaf;
    }
    path.ends[last] = end;
  }
  return undefined;
}

function separatorLength(raw: string, at: number): number {
  const code = raw.charCodeAt(at);
  if (code === COLON) return 1;
  return code === PERCENT && /^%3[Aa]$/.test(raw.slice(at, at + 3)) ? 3 : 0;
}

function capturesOf<T>(leaf: Leaf<T>, path: RequestPath): string[] {
  const { segments, variables, star2 } = leaf.input.template;
  const extra = path.count - segments.length;
  const captures: string[] = [];
  for (const { first, last, span } of variables) {
    const from = star2 >= 0 && first > star2 ? first + extra : first;
    const to = star2 >= 0 && last >= star2 ? last + extra : last;
    captures.push(captureOf(path, from, to, span));
  }
  return captures;
}
