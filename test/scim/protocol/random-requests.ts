// Random people, filters and patches, of few texts so that they often match; and how they are written in requests.
import { MAX_PATH_CONDITIONS } from "../../../src/scim/protocol/filter.js";
import type { Random } from "../../support/openapi/random.js";
import {
  ENTERPRISE,
  isFixed,
  type Json,
  KINDS,
  type Kind,
  type Kinds,
  kindAt,
  type Model,
  partsOf,
  type Step,
} from "./model.js";

const TEXTS = ["a", "A", "b", "ab", "work", "Work", "home", '"]\\', "", "é", "É", " and "];
const TIMES = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.5Z", "2026-01-02T00:00:00Z"];
const ORDERS = ["gt", "ge", "lt", "le"];
const PARTS = ["co", "sw", "ew"];

export class Requests {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A person as the service stores it. */
  person(): Json {
    const { id: _id, meta: _meta, groups: _groups, password: _password, ...kinds } = KINDS;
    const person = this.#object(kinds, 0.5, this.#right);
    return { ...person, userName: this.#right("name") };
  }

  /** The attributes that the service adds. */
  common(): Json {
    return {
      id: this.#random.pick(TEXTS),
      meta: { lastModified: this.#random.pick(TIMES), version: this.#random.pick(TEXTS) },
      ...(this.#random.chance(0.5) && { groups: [{ value: this.#random.pick(TEXTS) }] }),
    };
  }

  filter(depth: number, kinds = KINDS): Model {
    const none = { of: [], path: [], value: undefined, isWrong: false };
    const kind = this.#random.int(depth > 0 ? 8 : 4);
    if (kind === 4 || kind === 5) {
      const of = Array.from({ length: 2 + this.#random.int(2) }, () => this.filter(depth - 1, kinds));
      return { ...none, op: kind === 4 ? "and" : "or", of };
    }
    if (kind === 6) return { ...none, op: "not", of: [this.filter(depth - 1, kinds)] };
    const path = this.#path(kinds);
    const parts = partsOf(kindAt(kinds, path));
    if (kind === 7 && parts && kinds === KINDS)
      return { ...none, op: "some", path, of: [this.filter(depth - 1, parts)] };
    const condition = this.#condition(kinds, path);
    // Most filters are right.
    return condition.isWrong && this.#random.chance(0.9) ? this.filter(depth, kinds) : condition;
  }

  #condition(kinds: Kinds, path: readonly string[]): Model {
    const { pick, chance } = this.#random;
    const found = kindAt(kinds, path);
    const kind = typeof found === "object" ? partsOf(found)?.value : found;
    const op = pick(["eq", "eq", "eq", "ne", "pr", ...ORDERS, ...PARTS]);
    const value = chance(0.1) ? null : chance(0.03) ? pick([1, true, "no time"]) : this.#right(kind ?? "text");
    const isEquality = op === "eq" || op === "ne";
    const fits =
      kind === "flag" ? isBoolean(value) : typeof value === "string" && (kind !== "time" || value !== "no time");
    const allowed = kind === "flag" ? [] : kind === "time" ? ORDERS : [...ORDERS, ...PARTS];
    const isTime = kind !== "time" || !Number.isNaN(Date.parse(String(value)));
    const isRight =
      op === "pr" ||
      (kind !== undefined && (value === null ? isEquality : fits && isTime && (isEquality || allowed.includes(op))));
    return { op, of: [], path, value: op === "pr" ? undefined : value, isWrong: found === undefined || !isRight };
  }

  steps(): Step[][] {
    return Array.from({ length: 1 + this.#random.int(3) }, () => {
      const op = this.#random.pick(["add", "replace", "remove"] as const);
      if (op === "remove" || this.#random.chance(0.7)) return [this.#step(op, false)];
      const steps = Array.from({ length: this.#random.int(4) }, () => this.#step(op, true));
      return steps.filter(({ path }, index) => steps.findIndex((other) => other.path[0] === path[0]) === index);
    });
  }

  #step(op: Step["op"], isPart: boolean): Step {
    const { chance } = this.#random;
    let path = this.#path(KINDS);
    if (isFixed(path) && chance(0.8)) return this.#step(op, isPart);
    const parts = Array.isArray(kindAt(KINDS, path.slice(0, 1))) ? partsOf(kindAt(KINDS, path.slice(0, 1))) : undefined;
    const filter = parts && path[0] !== "groups" && chance(0.6) ? this.#elementFilter(parts) : undefined;
    if (filter && chance(0.3)) path = path.slice(0, 1);
    const value =
      op === "remove" && chance(0.5) ? undefined : this.#value(kindAt(KINDS, path) ?? "text", filter !== undefined);
    return { op, path, filter, value, isPart };
  }

  // With no more conditions than a path may have.
  #elementFilter(parts: Kinds): Model {
    const filter = this.filter(1 + this.#random.int(2), parts);
    return countConditions(filter) > MAX_PATH_CONDITIONS ? this.#elementFilter(parts) : filter;
  }

  #path(kinds: Kinds): string[] {
    const { pick, chance } = this.#random;
    if (chance(0.01)) return [pick(["__proto__", "constructor", "prototype", "toString", "nothing"])];
    const path = [pick(Object.keys(kinds))];
    for (let parts = partsOf(kindAt(kinds, path)); parts && chance(0.7); parts = partsOf(kindAt(kinds, path))) {
      path.push(pick(Object.keys(parts)));
    }
    return path;
  }

  // A value of a patch: mostly right.
  #value(kind: Kind, isOne: boolean): unknown {
    const { pick, chance } = this.#random;
    if (chance(0.05)) return pick([null, 1, "a", [], {}, true, ["a", "b"]]);
    if (Array.isArray(kind)) {
      const length = isOne ? 1 : this.#random.int(4);
      const list = Array.from({ length }, () => this.#object(kind[0], 0.6, (one) => this.#value(one, true)));
      return chance(0.3) && list.length === 1 ? list[0] : list;
    }
    if (typeof kind === "object") return this.#object(kind as Kinds, 0.5, (one) => this.#value(one, true), true);
    return this.#right(kind);
  }

  #object(kinds: Kinds, share: number, make: (kind: Kind) => unknown, mayBeEmpty = false): Json {
    const { pick, chance } = this.#random;
    const names = Object.keys(kinds);
    const chosen = names.filter(() => chance(share));
    const all = chosen.length === 0 && !mayBeEmpty ? [pick(names)] : chosen;
    return Object.fromEntries(
      all.map((name) => [make === this.#right ? name : this.#respell(name), make(kinds[name] ?? "text")]),
    );
  }

  readonly #right = (kind: Kind): unknown => {
    const { pick, chance, int } = this.#random;
    if (Array.isArray(kind)) {
      const all = Array.from({ length: 1 + int(3) }, () => this.#object(kind[0], 0.6, this.#right));
      const last = all.findLastIndex(({ primary }) => primary === true);
      return all.map((one, index) => (one.primary === true && index !== last ? { ...one, primary: false } : one));
    }
    if (typeof kind === "object") {
      const { displayName: _fixed, ...kinds } = kind as Kinds;
      return this.#object(kinds, 0.5, this.#right);
    }
    if (kind === "flag") return chance(0.5);
    if (kind === "time") return pick(TIMES);
    return pick(kind === "name" || kind === "key" ? TEXTS.filter((text) => text !== "") : TEXTS);
  };

  #respell(text: string): string {
    return this.#random.pick([text, text, text.toUpperCase(), text.toLowerCase()]);
  }

  /** A filter as requests have it. @param isInner whether it stands between brackets */
  write(model: Model, isInner = false, outer = ""): string {
    const { pick, chance } = this.#random;
    const { op, of, path, value } = model;
    const name = isInner ? this.#respell(path.join(".")) : this.writePath(path);
    const space = () => pick([" ", " ", "  "]);
    if (op === "some") return `${name}[${of.map((one) => this.write(one, true)).join("")}]`;
    if (op === "not")
      return `${this.#respell("not")}${pick(["", " "])}(${of.map((one) => this.write(one, isInner)).join("")})`;
    if (op === "and" || op === "or") {
      const text = of.map((one) => this.write(one, isInner, op)).join(`${space()}${this.#respell(op)}${space()}`);
      // `and` binds closer than `or`.
      return (outer === "and" && op === "or") || chance(0.3) ? `(${text})` : text;
    }
    return `${name} ${this.#respell(op)}${op === "pr" ? "" : `${space()}${JSON.stringify(value)}`}`;
  }

  writePath([first = "", ...rest]: readonly string[], filter?: Model): string {
    const brackets = filter === undefined ? "" : `[${this.write(filter, true)}]`;
    if (first === ENTERPRISE) return [this.#respell(first), rest.join(".")].join(rest.length > 0 ? ":" : "");
    const core = this.#random.chance(0.1) ? "urn:ietf:params:scim:schemas:core:2.0:User:" : "";
    const sub = rest.length > 0 ? `.${this.#respell(rest.join("."))}` : "";
    return `${this.#respell(core + first)}${brackets}${sub}`;
  }

  /** The body of a PATCH. */
  body(steps: readonly (readonly Step[])[]): Json {
    const operations = steps.map((parts) => {
      const [first] = parts;
      const op = this.#respell(first?.op ?? "add");
      if (first !== undefined && !first.isPart) {
        return { op, path: this.writePath(first.path, first.filter), value: first.value };
      }
      const value = Object.fromEntries(parts.map(({ path, filter, value }) => [this.writePath(path, filter), value]));
      return { op, value };
    });
    return { schemas: ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], [this.#respell("Operations")]: operations };
  }
}

function countConditions({ of }: Model): number {
  return of.length === 0 ? 1 : of.reduce((sum, one) => sum + countConditions(one), 0);
}

function isBoolean(value: unknown): boolean {
  return typeof value === "boolean" || /^(?:true|false)$/i.test(String(value));
}
