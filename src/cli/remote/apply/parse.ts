// Reads a file of `arbor apply`: YAML or JSON, each value by the rules of the service, with line and column of what is wrong.
import type { JsonValue } from "@bufbuild/protobuf";
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLMap,
} from "yaml";
import { formatViolation } from "../../../kernel/errors.js";
import { isName, isSink } from "../../../kernel/field-rules.js";
import { isUidText } from "../../../kernel/uidp.js";
import { Code, CommandError } from "../../errors.js";
import { findRelationship, type KindRow, kinds } from "./kinds.js";
import { type Desired, type DesiredState, type Position, type Reference, ROOT, splitPath } from "./model.js";

/** How many faults of a file are reported. */
const MAX_FAULTS = 20;

/** What is wrong with a file, and where. */
export interface FileFault {
  readonly at: Position;
  readonly text: string;
}

/** Creates the error of a file with these faults. */
export function rejectFile(faults: readonly FileFault[]): CommandError {
  const inOrder = [...faults].sort(({ at: a }, { at: b }) => a.line - b.line || a.column - b.column);
  const lines = inOrder.slice(0, MAX_FAULTS).map(({ at, text }) => `${formatPosition(at)}: ${text}`);
  if (faults.length > lines.length) lines.push(`and ${faults.length - lines.length} more`);
  return new CommandError(Code.InvalidArgument, lines.join("\n"));
}

/** Formats a position as compilers do: file, line and column. */
export function formatPosition({ file, line, column }: Position): string {
  return `${file}:${line}:${column}`;
}

/**
 * Parses a file.
 *
 * @param file its name in errors
 * @throws CommandError INVALID_ARGUMENT with all that is wrong
 */
export function parseState(file: string, source: string): DesiredState {
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { lineCounter, prettyErrors: false, resolveKnownTags: false });
  const reader = new FileReader(file, document, lineCounter);
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined)
    throw rejectFile([{ at: reader.positionAt(fault.pos[0]), text: `no JSON or YAML (${fault.code})` }]);
  const state = reader.read();
  if (reader.faults.length > 0) throw rejectFile(reader.faults);
  return state;
}

class Rejected extends Error {}

class FileReader {
  readonly faults: FileFault[] = [];
  readonly #file: string;
  readonly #document: Document;
  readonly #lines: LineCounter;
  readonly #first = new Map<string, Position>();
  #organization = "";

  constructor(file: string, document: Document, lines: LineCounter) {
    this.#file = file;
    this.#document = document;
    this.#lines = lines;
  }

  positionAt(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { file: this.#file, line, column: col };
  }

  read(): DesiredState {
    const resources: Desired[] = [];
    const sections = new Set<KindRow["kind"]>();
    let hasNoGuard = false;
    this.#collect(() => {
      const top = this.#members(this.#document.contents as Node | null, "", [
        "organization",
        ...kinds.map(({ section }) => section),
      ]);
      const organization = top.get("organization");
      if (organization !== undefined) this.#organization = this.#text(organization, "organization");
      for (const row of kinds) {
        const member = top.get(row.section);
        if (member === undefined) continue;
        sections.add(row.kind);
        if (row.kind !== "issuer guard") {
          const list = this.#resolve(member.value);
          if (!isSeq(list)) return this.#reject(member.at, `${row.section} must be a list`);
          for (const [i, item] of list.items.entries())
            this.#collect(() => resources.push(this.#item(row, item as Node, `${row.section}[${i}]`)));
        } else if (this.#json(member) === null) hasNoGuard = true;
        else this.#collect(() => resources.push(this.#item(row, member.value, row.section)));
      }
    });
    return { file: this.#file, organization: this.#organization, resources, sections, hasNoGuard };
  }

  #item(row: KindRow, node: Node | null, label: string): Desired {
    const at = this.#positionOf(node);
    const members = this.#members(node, label, [...row.keys, ...row.fields.map(({ name }) => name)]);
    for (const key of row.keys) if (!members.has(key)) this.#reject(at, `${label}.${key} is required`);
    const text = (key: string) => this.#text(members.get(key) as Member, `${label}.${key}`);
    const atKey = (key: string) => members.get(key)?.at ?? at;
    const named = this.#identify(row, { text, at: atKey, label });
    const values: Record<string, JsonValue> = {};
    const fields: Record<string, Position> = {};
    for (const { name, parse } of row.fields) {
      const member = members.get(name);
      if (member === undefined) continue;
      fields[name] = member.at;
      this.#collect(() => {
        const reject = (path: string, rule: string) =>
          this.#reject(this.#locate(node, path), `${label}.${path} ${rule}`);
        values[name] = parse(this.#json(member), { reject });
      });
    }
    const desired: Desired = { kind: row.kind, ...named, values, at, fields };
    this.#checkTwice(desired, label);
    this.#checkRelationship(desired, label);
    return desired;
  }

  #identify(
    { kind, keys }: KindRow,
    { text, at, label }: { text: (key: string) => string; at: (key: string) => Position; label: string },
  ): Pick<Desired, "group" | "name" | "identity" | "role"> {
    const path = (key: string) => this.#path(text(key), at(key), `${label}.${key}`);
    if (kind === "issuer guard") return { group: ROOT, name: "" };
    if (keys.includes("path")) {
      const own = path("path");
      if (own === ROOT && kind !== "group")
        this.#reject(at("path"), `${label}.path must have the name of the ${kind} at its end, such as /ci`);
      return splitPath(own);
    }
    const group = path("group");
    if (kind === "subscription") {
      const sink = text("sink");
      const broken = isSink(sink, "sink");
      if (broken !== undefined) this.#reject(at("sink"), `${label}.sink ${broken.rule}`);
      return { group, name: sink };
    }
    const refer = (key: "identity" | "role"): Reference => {
      const given = text(key);
      const isPath = given.startsWith("/") || given.startsWith(`${this.#organization}/`);
      if (isUidText(given)) return { text: given, at: at(key) };
      if (isPath) return { text: path(key), at: at(key) };
      const isOther = key === "role" ? isName(given, key) === undefined : /^[^/\s]+@[^/\s]+$/.test(given);
      const other = key === "role" ? "the name of a built-in role such as viewer" : "the e-mail address of a person";
      if (!isOther) this.#reject(at(key), `${label}.${key} must be a path such as /team/ci, ${other}, or a uid`);
      return { text: given, at: at(key) };
    };
    return { group, name: "", identity: refer("identity"), role: refer("role") };
  }

  // Two of one key: the later one would undo the earlier one.
  #checkTwice({ kind, group, name, identity, role, at }: Desired, label: string): void {
    const key = JSON.stringify([kind, group, name, identity?.text, role?.text]);
    const first = this.#first.get(key);
    if (first !== undefined) this.#reject(at, `${label} is the same ${kind} as that of line ${first.line}`);
    this.#first.set(key, at);
  }

  #checkRelationship({ kind, values, fields, at }: Desired, label: string): void {
    if (kind !== "identity") return;
    const own = findRelationship(values);
    const others = Object.keys(values).filter((name) => name !== own && findRelationship({ [name]: 0 }) === name);
    const [other] = others;
    if (other !== undefined)
      this.#reject(fields[other] ?? at, `${label} has ${own} and ${other}, but may have one of them`);
  }

  /** Reads a path: from the organisation, as `/team/ci`, or as commands take it, `acme.example/team/ci`. */
  #path(text: string, at: Position, label: string): string {
    const isFull = text === this.#organization || text.startsWith(`${this.#organization}/`);
    const path = isFull && text !== "" ? text.slice(this.#organization.length) || ROOT : text;
    if (!path.startsWith("/"))
      this.#reject(at, `${label} must be a path from the organisation, such as /team; / is the organisation`);
    if (path === ROOT) return path;
    for (const segment of path.slice(1).split("/")) {
      const broken = isName(segment, label);
      if (broken !== undefined)
        this.#reject(
          at,
          `${label} must be names with slashes between, and ${JSON.stringify(segment)} ${formatViolation({ ...broken, field: "", subject: "" })}`,
        );
    }
    return path;
  }

  #text(member: Member, label: string): string {
    const value = this.#json(member);
    if (typeof value !== "string" || value === "")
      return this.#reject(member.at, `${label} must be a text; put a number in quotation marks`);
    return value;
  }

  #json({ value, at }: Member): JsonValue {
    if (value === null) return null;
    try {
      return value.toJS(this.#document) as JsonValue;
    } catch {
      // Nested aliases, which could expand without a limit.
      return this.#reject(at, "is no JSON or YAML that can be written out");
    }
  }

  #members(node: Node | null, label: string, names: readonly string[]): ReadonlyMap<string, Member> {
    const map = this.#resolve(node);
    const what = label === "" ? "the file" : label;
    if (!isMap(map)) return this.#reject(this.#positionOf(node), `${what} must be an object with ${names.join(", ")}`);
    const members = new Map<string, Member>();
    for (const { key, value } of (map as YAMLMap<Node, Node | null>).items) {
      const name = isScalar(key) ? String(key.value) : "";
      const at = this.#positionOf(key);
      if (names.includes(name)) members.set(name, { value, at: value === null ? at : this.#positionOf(value) });
      else
        this.#collect(() =>
          this.#reject(
            at,
            `${label === "" ? "" : `${label}.`}${name} is unknown; there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`,
          ),
        );
    }
    return members;
  }

  // The position of the value at a path, or of what is nearest above it. Keys may have dots.
  #locate(node: Node | null, path: string): Position {
    let current = this.#resolve(node);
    let found = node;
    for (let rest = path; rest !== ""; ) {
      let next: Node | null = null;
      if (isSeq(current)) {
        const [whole = "", index = ""] = /^\[(\d+)\]\.?/.exec(rest) ?? [];
        next = whole === "" ? null : ((current.items[Number(index)] ?? null) as Node | null);
        rest = rest.slice(whole.length);
      } else if (isMap(current)) {
        const pairs = (current as YAMLMap<Node, Node | null>).items.filter(({ key }) => {
          const name = isScalar(key) ? String(key.value) : "";
          return name !== "" && rest.startsWith(name) && /^(?:$|[.[])/.test(rest.slice(name.length));
        });
        const [pair] = pairs.sort((a, b) => String(b.key).length - String(a.key).length);
        next = pair === undefined ? null : (pair.value ?? pair.key);
        if (pair !== undefined)
          rest = rest.slice(String((pair.key as { value?: unknown }).value).length).replace(/^\./, "");
      }
      if (next === null) break;
      found = next;
      current = this.#resolve(next);
    }
    return this.#positionOf(found);
  }

  #resolve(node: Node | null): Node | null {
    return isAlias(node) ? (node.resolve(this.#document) ?? null) : node;
  }

  #positionOf(node: Node | null): Position {
    return this.positionAt(node?.range?.[0] ?? 0);
  }

  #reject(at: Position, text: string): never {
    this.faults.push({ at, text });
    throw new Rejected(text);
  }

  // Notes a fault and goes on, so that one run says all that is wrong.
  #collect(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof Rejected)) throw error;
    }
  }
}

interface Member {
  readonly value: Node | null;
  readonly at: Position;
}
