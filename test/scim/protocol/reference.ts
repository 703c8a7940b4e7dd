// A naive interpreter of filters and patches, to compare that of the service with.
import type { Json, Kind, Kinds, Model, Step } from "./model.js";
import { isFixed, isWrong, KINDS, kindAt, partsOf } from "./model.js";

/** An error by its `scimType`. */
export class Fault extends Error {}

const isList = (kind: Kind | undefined): kind is readonly [Kinds] => Array.isArray(kind);
const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

function fold(kind: Kind | undefined, value: unknown): unknown {
  if (kind === "time") return Date.parse(String(value));
  if (kind === "flag") return value === undefined ? undefined : /true/i.test(String(value));
  return (kind === "text" || kind === "name") && typeof value === "string" ? value.toLowerCase() : value;
}

/** All values at a path, with undefined where there is none. */
function collect(holder: unknown, [name, ...rest]: readonly string[]): unknown[] {
  if (name === undefined) return [holder];
  const all = toList((holder as Json | undefined)?.[name]);
  return (all.length === 0 ? [undefined] : all).flatMap((one) => collect(one, rest));
}

function isPresent(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some(isPresent);
  return value !== undefined && value !== "";
}

export function holds({ op, of, path, value }: Model, holder: unknown, kinds: Kinds): boolean {
  const kind = kindAt(kinds, path);
  const parts = partsOf(kind) ?? {};
  if (op === "and") return of.every((one) => holds(one, holder, kinds));
  if (op === "or" || op === "not") return of.some((one) => holds(one, holder, kinds)) === (op === "or");
  const all = collect(holder, path);
  if (op === "some") return all.some((one) => one !== undefined && of.every((inner) => holds(inner, one, parts)));
  if (op === "pr") return all.some(isPresent);
  return (typeof kind === "object" ? collect(holder, [...path, "value"]) : all).some((one) => {
    if (one === undefined || value === null) return op === (one === undefined && value === null ? "eq" : "ne");
    const leaf = typeof kind === "object" ? parts.value : kind;
    const [left, right] = [fold(leaf, one), fold(leaf, value)] as [string, string];
    if (op === "co") return left.split(right).length > 1 || right === "";
    if (op === "sw" || op === "ew") return op === "sw" ? left.indexOf(right) === 0 : left.endsWith(right);
    return (left < right ? "ne lt le" : left > right ? "ne gt ge" : "eq ge le").includes(op);
  });
}

/** Reads a value as it was sent; undefined for none. */
export function read(kind: Kind | undefined, raw: unknown, isElement = false): unknown {
  if (raw === null || raw === undefined) return undefined;
  if (isList(kind)) return settle(readAll(kind[0], raw));
  if (typeof kind === "object") {
    const given = Object.entries(unwrap(kind as Kinds, raw, isElement));
    const values = Object.entries(kind).map(([name, part]) => {
      const [, value] = given.find(([key]) => key.toLowerCase() === name.toLowerCase()) ?? [];
      const isDropped = isFixed([name]) || name === "password" || (name === "displayName" && "value" in kind);
      return [name, isDropped ? undefined : read(part, value)];
    });
    return sparse(Object.fromEntries(values));
  }
  if (kind === "flag" && ["true", "false"].includes(String(raw).toLowerCase())) return fold(kind, raw);
  const isEmpty = raw === "" && (kind === "name" || kind === "key");
  if (kind === "flag" || typeof raw !== "string" || isEmpty) throw new Fault("invalidValue");
  return raw;
}

function readAll(kinds: Kinds, raw: unknown): Json[] {
  return toList(raw).flatMap((one) => (read(kinds, one, true) ?? []) as Json[]);
}

function unwrap(parts: Kinds, raw: unknown, isElement: boolean): Json {
  const one: unknown = !isElement && Array.isArray(raw) && raw.length === 1 ? raw[0] : raw;
  if (!isElement && typeof one === "string" && parts.value) return { value: one };
  if (typeof one !== "object" || one === null || Array.isArray(one)) throw new Fault("invalidValue");
  return one as Json;
}

function sparse(object: Json): Json | undefined {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** The last primary one of `among` becomes the only one. */
function settle(all: readonly (Json | undefined)[], among = all): Json[] | undefined {
  const present = all.filter((one) => one !== undefined);
  const last = among.filter((one) => one?.primary === true).at(-1);
  const values = present.map((one) => (last && one !== last && one.primary ? { ...one, primary: false } : one));
  return values.length === 0 ? undefined : values;
}

/** Applies steps to a resource without `id` and `meta`. */
export function patch(resource: Json, steps: readonly Step[]): Json {
  const known = ({ path }: Step) => kindAt(KINDS, path) !== undefined;
  for (const step of steps) {
    if (step.filter && isWrong(step.filter)) throw new Fault("invalidFilter");
    if (!step.isPart && !known(step)) throw new Fault("invalidPath");
    if (!step.isPart && isFixed(step.path)) throw new Fault("mutability");
  }
  let result = resource;
  for (const step of steps) {
    if (!known(step) || isFixed(step.path) || step.path[0] === "password") continue;
    result = change(result, KINDS, step, step.path);
    if (result.userName === undefined) throw new Fault("mutability");
  }
  return read(KINDS, result) as Json;
}

function change(holder: Json, kinds: Kinds, step: Step, [name = "", ...rest]: readonly string[]): Json {
  const [kind, old, { op, value }] = [kinds[name], holder[name], step];
  let next: unknown; // undefined removes
  if (isList(kind) && (rest.length > 0 || step.filter)) next = changeElements(kind[0], (old ?? []) as Json[], step);
  else if (rest.length > 0) next = sparse(change((old ?? {}) as Json, partsOf(kind) ?? {}, step, rest));
  else if (op !== "remove") next = assign(kind, old, op, value);
  else if (isList(kind) && value !== undefined && value !== null) {
    const gone = readAll(kind[0], value);
    const isGone = (one: Json) => gone.some((other) => isSame(kind[0], one, other, ["value"]));
    next = settle(((old ?? []) as Json[]).filter((one) => !isGone(one)));
  }
  return { ...holder, [name]: next };
}

function isSame(kinds: Kinds, one: Json, other: Json, names: readonly string[]): boolean {
  if ((one.value === undefined) !== (other.value === undefined)) return false;
  const compared = one.value === undefined ? Object.keys(kinds) : names;
  return compared.every((name) => fold(kinds[name], one[name]) === fold(kinds[name], other[name]));
}

function assign(kind: Kind | undefined, old: unknown, op: string, value: unknown): unknown {
  if (isList(kind) && op === "add") {
    const all = [...((old ?? []) as Json[])];
    const primary: Json[] = [];
    for (const one of readAll(kind[0], value)) {
      const found = all.findIndex((other) => isSame(kind[0], one, other, ["value", "type"]));
      const merged = { ...all[found], ...one };
      all[found < 0 ? all.length : found] = merged;
      if (one.primary === true) primary.push(merged);
    }
    return settle(all, primary);
  }
  if (value === null) return op === "add" ? old : undefined;
  if (isList(kind) || typeof kind !== "object") return read(kind, value);
  const next = { ...(old as Json | undefined) };
  for (const [key, one] of Object.entries(unwrap(kind as Kinds, value, false))) {
    const name = Object.keys(kind).find((part) => part.toLowerCase() === key.toLowerCase());
    if (name && !isFixed(["manager", name])) next[name] = assign((kind as Kinds)[name], next[name], op, one);
  }
  return sparse(next);
}

function changeElements(kinds: Kinds, all: readonly Json[], { op, path, filter, value }: Step): Json[] | undefined {
  const isMeant = (one: Json) => !filter || holds(filter, one, kinds);
  const sub = path[1];
  const alter = (one: Json, by: string): Json | undefined => {
    if (sub) return sparse({ ...one, [sub]: by === "remove" ? undefined : assign(kinds[sub], one[sub], by, value) });
    const [first, ...more] = by === "remove" ? [] : readAll(kinds, value);
    if (more.length > 0) throw new Fault("invalidValue");
    return first && by === "add" ? { ...one, ...first } : first;
  };
  if (all.some(isMeant) || op === "remove" || value === null) {
    const next = all.map((one) => (isMeant(one) ? alter(one, op) : one));
    const changed = next.filter((_, index) => isMeant(all[index] ?? {}));
    return settle(next, changed);
  }
  const fresh = filter ? equalities(filter, kinds) : {};
  if (filter && !holds(filter, fresh, kinds)) throw new Fault("noTarget");
  const made = alter(fresh, "add");
  return settle([...all, made], [made]);
}

function equalities({ op, of, path, value }: Model, kinds: Kinds): Json {
  if (op === "and") return Object.assign({}, ...of.map((one) => equalities(one, kinds)));
  if (op !== "eq") throw new Fault("noTarget");
  return value === null ? {} : { [path[0] ?? ""]: read(kindAt(kinds, path), value) };
}
