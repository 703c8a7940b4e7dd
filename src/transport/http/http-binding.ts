// The HTTP rules of a method (google.api.http), checked against its request and response messages at start, so that a
// wrong rule never reaches a request.
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.js";
import type { HttpRule } from "#gen/google/api/http_pb.js";
import { getFieldsByName, readOption } from "../../codec/fields.js";
import { createTextReader, type TextReader } from "../../codec/query-value.js";
import type { MethodEntry } from "../../pipeline/method-table.js";
import { omitWildcard, parseTemplate, type Template } from "./http-rule.js";

/** A variable of a path and the field it sets. */
export interface BoundVariable {
  /** The camelCase JSON path of the field. */
  readonly path: string;
  /** The message fields on the way to the field. */
  readonly parents: readonly DescField[];
  readonly field: DescField;
  readonly read: TextReader;
}

/** One way to reach a method over HTTP. */
export interface HttpBinding {
  readonly entry: MethodEntry;
  /** `package.Service.Method`. */
  readonly name: string;
  /** The HTTP method, `*` for any. */
  readonly method: string;
  readonly template: Template;
  /** In the order of the template's variables, without the one that {@link omitWildcard} leaves out. */
  readonly variables: readonly BoundVariable[];
  /** The body: nothing, the whole request, or one field of it. */
  readonly body: "none" | "all" | DescField;
  /** The field of the response that is sent instead of the whole. */
  readonly responseBody: DescField | undefined;
  /** Whether it is one of the rule's additional bindings. */
  readonly additional: boolean;
  /** For a deprecated path, the template that replaces it. */
  readonly current?: Template;
}

const TOKEN = /^[A-Z][A-Z0-9-]*$/;

/**
 * Builds the HTTP bindings of a method; none if it has no rule.
 *
 * @throws TypeError naming file and method when a rule cannot be served.
 */
export function buildBindings(entry: MethodEntry): HttpBinding[] {
  const { desc } = entry;
  const rule = entry.http === undefined ? readOption(desc, http) : entry.http;
  if (rule === undefined || rule === null) return [];
  const where = `${desc.parent.file.name}.proto: ${desc.parent.typeName}.${desc.name}`;
  if (desc.methodKind !== "unary" && desc.methodKind !== "server_streaming") {
    throw new TypeError(`${where}: google.api.http is not served for methods that take a stream`);
  }
  const extra = rule.additionalBindings.map((additional) => {
    if (additional.additionalBindings.length > 0) throw new TypeError(`${where}: additional_bindings cannot be nested`);
    return buildBinding(entry, additional, where, true);
  });
  const current = [buildBinding(entry, rule, where, false), ...extra];
  return [
    ...current,
    ...(entry.allowEmptyPath ? [buildEmptyPathBinding(current[0], where)] : []),
    ...buildFormerBindings(entry, rule, where),
  ];
}

function buildEmptyPathBinding(binding: HttpBinding | undefined, where: string): HttpBinding {
  const scalar = binding?.variables.at(-1)?.field.scalar;
  if (binding === undefined || scalar !== ScalarType.STRING) throw new TypeError(`${where}: the path sets no text`);
  return { ...binding, template: omitWildcard(binding.template, where), additional: true };
}

function buildFormerBindings(entry: MethodEntry, rule: HttpRule, where: string): HttpBinding[] {
  const [method, path] = parsePattern(rule, where);
  const spellings = (entry.formerPaths ?? []).filter(({ current }) => path.includes(current));
  return spellings.map(({ current, former }) => {
    const pattern = {
      case: "custom",
      value: { kind: method, path: path.replace(current, former) },
    } as HttpRule["pattern"];
    return { ...buildBinding(entry, { ...rule, pattern }, where, true), current: parseTemplate(path, where) };
  });
}

function buildBinding(entry: MethodEntry, rule: HttpRule, where: string, additional: boolean): HttpBinding {
  const { input, output, parent, name } = entry.desc;
  const [method, path] = parsePattern(rule, where);
  const template = parseTemplate(path, where);
  const variables = template.variables.map((variable) => {
    try {
      return bindVariable(input, variable.path);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new TypeError(`${where}: path template "${path}", column ${variable.column}: ${reason}`);
    }
  });
  const body = resolveBody(input, rule.body, where);
  if (body !== "none" && (method === "GET" || method === "HEAD")) {
    throw new TypeError(`${where}: a ${method} rule cannot have a body`);
  }
  if (typeof body === "object" && variables.some(({ parents, field }) => parents.length === 0 && field === body)) {
    throw new TypeError(`${where}: body "${rule.body}" is a variable of the path as well`);
  }
  rejectOneofTwice(variables, body, where);
  const responseBody = rule.responseBody === "" ? undefined : output.fields.find((f) => f.name === rule.responseBody);
  if (rule.responseBody !== "" && responseBody === undefined) {
    throw new TypeError(`${where}: response_body "${rule.responseBody}" is no field of ${output.typeName}`);
  }
  return {
    entry,
    name: `${parent.typeName}.${name}`,
    method,
    template,
    variables,
    body,
    responseBody,
    additional,
  };
}

function parsePattern({ pattern }: HttpRule, where: string): [method: string, path: string] {
  if (pattern.case === undefined) throw new TypeError(`${where}: google.api.http names no HTTP method`);
  if (pattern.case !== "custom") return [pattern.case.toUpperCase(), pattern.value];
  const { kind, path } = pattern.value;
  if (kind !== "*" && !TOKEN.test(kind)) throw new TypeError(`${where}: "${kind}" is no HTTP method`);
  return [kind, path];
}

function resolveBody(input: DescMessage, body: string, where: string): HttpBinding["body"] {
  if (body === "") return "none";
  if (body === "*") return "all";
  const field = input.fields.find((candidate) => candidate.name === body);
  if (field === undefined) throw new TypeError(`${where}: body "${body}" is no field of ${input.typeName}`);
  return field;
}

function bindVariable(input: DescMessage, path: readonly string[]): BoundVariable {
  const parents: DescField[] = [];
  let at = input;
  for (const name of path.slice(0, -1)) {
    const parent = findProtoField(at, name);
    if (parent.fieldKind !== "message" || createTextReader(parent) !== undefined) {
      throw new TypeError(`${path.join(".")}: ${name} is no message that a path can lead through`);
    }
    parents.push(parent);
    at = parent.message;
  }
  const field = findProtoField(at, path.at(-1) ?? "");
  const read = field.fieldKind === "list" || field.fieldKind === "map" ? undefined : createTextReader(field);
  if (read === undefined) throw new TypeError(`${path.join(".")}: a path cannot set a ${kindOf(field)} field`);
  return { path: [...parents, field].map((f) => f.jsonName).join("."), parents, field, read };
}

// Both would be set, so every request would be invalid.
function rejectOneofTwice(variables: readonly BoundVariable[], body: HttpBinding["body"], where: string): void {
  const chains = variables.map(({ parents, field }) => [...parents, field]);
  if (typeof body === "object") chains.push([body]);
  const members = new Map<string, DescField>();
  for (const chain of chains) {
    for (const [i, field] of chain.entries()) {
      if (field.oneof === undefined) continue;
      const path = [...chain.slice(0, i).map(({ name }) => name), field.oneof.name].join(".");
      const other = members.get(path) ?? field;
      if (other !== field) {
        throw new TypeError(`${where}: ${other.name} and ${field.name} are members of one oneof, ${path}`);
      }
      members.set(path, field);
    }
  }
}

function findProtoField(desc: DescMessage, name: string): DescField {
  const field = getFieldsByName(desc).get(name);
  if (field === undefined || field.name !== name) throw new TypeError(`${desc.typeName} has no field ${name}`);
  return field;
}

function kindOf(field: DescField): string {
  return field.fieldKind === "list" ? "repeated" : field.fieldKind;
}
