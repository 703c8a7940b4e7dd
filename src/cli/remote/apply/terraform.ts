// An organisation as resources of the published Terraform provider, with blocks that import what there is. The organisation
// itself is none of them, so that `terraform destroy` leaves it.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { parentOf } from "../../../kernel/uidp.js";
import { escapeControls } from "../../output/terminal.js";
import { createNames, listExported } from "./build-file.js";
import { findRelationship } from "./kinds.js";
import { type Actual, type ActualState, pathOf, ROOT } from "./model.js";

/** The source of the provider, for `terraform init`. */
const PROVIDER = "chainguard-dev/chainguard";

/** An expression of HCL that is written as it is. */
class Expression {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = Expression | string | readonly string[] | Readonly<Record<string, string>> | Block;

/** The attributes of a nested block. */
class Block {
  readonly attributes: Readonly<Record<string, Value | undefined>>;

  constructor(attributes: Readonly<Record<string, Value | undefined>>) {
    this.attributes = attributes;
  }
}

/**
 * Formats the configuration.
 *
 * @param notes what is not in it besides
 */
export function formatTerraform(actual: ActualState, notes: readonly string[], nowMs: number): string {
  return new Writer(actual, nowMs).format(notes);
}

class Writer {
  readonly #actual: ActualState;
  readonly #nowMs: number;
  readonly #names: ReturnType<typeof createNames>;
  /** The addresses of resources by uid. */
  readonly #addresses = new Map<string, string>();
  readonly #taken = new Set<string>();
  readonly #notes: string[] = [];

  constructor(actual: ActualState, nowMs: number) {
    this.#actual = actual;
    this.#nowMs = nowMs;
    this.#names = createNames(actual);
  }

  format(notes: readonly string[]): string {
    const written = listExported(this.#actual)
      .map((one) => ({ one, label: this.#labelOf(one) }))
      .sort((a, b) => (a.label < b.label ? -1 : 1));
    const blocks: string[] = [];
    // Addresses first, because resources refer to each other.
    const all = written.flatMap(({ one, label }) => {
      const type = this.#typeOf(one);
      if (type === undefined) return [];
      const address = `${type}.${this.#choose(type, label)}`;
      this.#addresses.set(one.uid, address);
      return [{ one, address }];
    });
    for (const { one, address } of all) {
      const [type = "", name = ""] = address.split(".");
      blocks.push(`resource ${quote(type)} ${quote(name)} {\n${formatAttributes(this.#attributesOf(one), "  ")}}\n`);
      blocks.push(`import {\n  to = ${address}\n  id = ${quote(one.uid)}\n}\n`);
    }
    const { name, uid } = this.#actual.organization;
    const comments = [
      `The organisation ${name}, as arbor export has written it. The organisation itself is not managed here.`,
      "What is not in this file, or not the same elsewhere:",
      ...[...notes, ...this.#notes].map((note) => `  - ${note}`),
    ];
    return [
      comments.map((line) => `# ${escapeControls(line)}\n`).join(""),
      `terraform {\n  required_providers {\n    chainguard = {\n      source = ${quote(PROVIDER)}\n    }\n  }\n}\n`,
      `locals {\n  organization = ${quote(uid)}\n}\n`,
      ...blocks,
    ].join("\n");
  }

  #labelOf(one: Actual): string {
    if (one.kind === "role binding") return `${one.group} ${this.#names.identity(one)} ${this.#names.role(one)}`;
    return one.kind === "subscription" ? `${one.group} ${one.name}` : pathOf(one);
  }

  /** The type of the provider; undefined for what it has none for, which is noted. */
  #typeOf(one: Actual): string | undefined {
    switch (one.kind) {
      case "group":
        return pathOf(one) === ROOT ? undefined : "chainguard_group";
      case "issuer guard":
        this.#notes.push("the issuer guard");
        return undefined;
      case "role":
        return "chainguard_role";
      case "identity":
        return this.#isExpired(one) ? undefined : this.#noteIdentity(one);
      case "role binding":
        if (one.values.endTime === null) return "chainguard_rolebinding";
        this.#notes.push(`the role binding ${this.#labelOf(one)}, which ends at ${one.values.endTime}`);
        return undefined;
      case "subscription":
        return "chainguard_subscription";
    }
  }

  #isExpired(one: Actual): boolean {
    const { expirationTime } = (one.values.staticKeys ?? {}) as JsonObject;
    const isExpired = typeof expirationTime === "string" && Date.parse(expirationTime) <= this.#nowMs;
    if (isExpired) this.#notes.push(`the identity ${pathOf(one)}, whose static keys have expired`);
    return isExpired;
  }

  #noteIdentity(one: Actual): string {
    const { conditions, company, staticKeys } = one.values;
    if (Array.isArray(conditions) && conditions.length > 0)
      this.#notes.push(`the conditions of ${pathOf(one)}, which stay`);
    if (company !== "") this.#notes.push(`the company of ${pathOf(one)}`);
    if (((staticKeys ?? {}) as JsonObject).audiences !== undefined)
      this.#notes.push(`the audience of the static keys of ${pathOf(one)}`);
    return "chainguard_identity";
  }

  /** Chooses a name of Terraform that no other resource of the type has. */
  #choose(type: string, label: string): string {
    const words = label.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^_+|_+$/g, "");
    const base = /^[A-Za-z_]/.test(words) ? words : `_${words}`;
    let name = base;
    for (let i = 2; this.#taken.has(`${type} ${name}`); i++) name = `${base}_${i}`;
    this.#taken.add(`${type} ${name}`);
    return name;
  }

  #attributesOf(one: Actual): Readonly<Record<string, Value | undefined>> {
    const { values } = one;
    const parent = this.#refer(parentOf(one.uid) ?? "");
    const description = values.description === "" ? undefined : String(values.description);
    switch (one.kind) {
      case "group":
        return { parent_id: parent, name: one.name, description };
      case "role":
        // The provider reads the description of a role as an empty text, not as none.
        return {
          ...{ parent_id: parent, name: one.name, description: String(values.description) },
          capabilities: values.capabilities as string[],
        };
      case "identity":
        return { parent_id: parent, name: one.name, description, ...relationshipOf(one) };
      case "role binding":
        return { group: parent, identity: this.#refer(one.identityUid ?? ""), role: this.#refer(one.roleUid ?? "") };
      default:
        return { parent_id: parent, sink: one.name };
    }
  }

  #refer(uid: string): Expression {
    if (uid === this.#actual.organization.uid) return new Expression("local.organization");
    const address = this.#addresses.get(uid);
    return new Expression(address === undefined ? quote(uid) : `${address}.id`);
  }
}

/** The names of the members of relationships in the provider, where they are not in snake case. */
const providerNames: Readonly<Record<string, string>> = {
  staticKeys: "static",
  arn: "aws_arn",
  arnPattern: "aws_arn_pattern",
  userId: "aws_user_id",
  userIdPattern: "aws_user_id_pattern",
  expirationTime: "expiration",
};

function relationshipOf({ values }: Actual): Readonly<Record<string, Value>> {
  const name = findRelationship(values);
  if (name === undefined) return {};
  if (name === "servicePrincipal")
    return { service_principal: String(values[name]).replace(/^SERVICE_PRINCIPAL_/, "") };
  const { audiences: _, ...members } = values[name] as JsonObject;
  const attributes = Object.entries(members).map(([key, value]) => [toProviderName(key), toValue(key, value)]);
  return { [toProviderName(name)]: new Block(Object.fromEntries(attributes)) };
}

function toProviderName(name: string): string {
  return providerNames[name] ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function toValue(key: string, value: JsonValue): Value {
  if (typeof value === "object" && value !== null) return value as Readonly<Record<string, string>>;
  // The provider has times without a fraction of a second.
  return key === "expirationTime" ? String(value).replace(/\.\d+Z$/, "Z") : String(value);
}

function formatAttributes(attributes: Readonly<Record<string, Value | undefined>>, indent: string): string {
  const given = Object.entries(attributes).filter((entry): entry is [string, Value] => entry[1] !== undefined);
  const blocks = given.filter((entry): entry is [string, Block] => entry[1] instanceof Block);
  const plain = given.flatMap(([name, value]): Line[] =>
    value instanceof Block ? [] : [[name, formatValue(value, indent)]],
  );
  const nested = blocks.map(
    ([name, block]) => `${indent}${name} {\n${formatAttributes(block.attributes, `${indent}  `)}${indent}}\n`,
  );
  return alignLines(plain, indent) + nested.join("");
}

type Line = readonly [name: string, value: string];

/** Aligns the equals signs of lines that follow each other, as `terraform fmt` does. A value of several lines ends a run. */
function alignLines(lines: readonly Line[], indent: string): string {
  let text = "";
  for (let from = 0; from < lines.length; ) {
    const next = lines.findIndex(([, value], i) => i >= from && value.includes("\n"));
    const to = next === from ? from + 1 : next < 0 ? lines.length : next;
    const run = lines.slice(from, to);
    const width = Math.max(...run.map(([name]) => name.length));
    text += run.map(([name, value]) => `${indent}${name.padEnd(width)} = ${value}\n`).join("");
    from = to;
  }
  return text;
}

function formatValue(value: Exclude<Value, Block>, indent: string): string {
  if (value instanceof Expression) return value.text;
  if (typeof value === "string") return quote(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[\n${value.map((one: string) => `${inner}${quote(one)},\n`).join("")}${indent}]`;
  const members = Object.entries(value).map(([key, one]): Line => [quote(key), quote(String(one))]);
  return `{\n${alignLines(members, inner)}${indent}}`;
}

/** Quotes a text as HCL does, in which `${` and `%{` begin a template. */
export function quote(text: string): string {
  const escaped = text
    .replace(/[\\"]/g, "\\$&")
    .replace(/\n/g, "\\n")
    .replace(/\r/g, "\\r")
    .replace(/\t/g, "\\t")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are escaped
    .replace(/[\u0000-\u001f\u007f]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .replace(/([$%])(?=\{)/g, "$1$1");
  return `"${escaped}"`;
}
