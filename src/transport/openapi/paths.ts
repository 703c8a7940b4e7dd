// Path templates of google.api.http as OpenAPI paths, with one parameter per wildcard. OpenAPI does not distinguish
// paths by the names of parameters, so routes that differ only in these share one path, with the names that occur most
// often.
import type { DescField } from "@bufbuild/protobuf";
import type { HttpBinding } from "../http/http-binding.js";

/** A parameter of a path. */
export interface PathParameter {
  readonly name: string;
  /** The field whose value, or a part of it, the parameter is; undefined when it sets none. */
  readonly field: DescField | undefined;
  /** Whether the parameter is the whole value of the field. */
  readonly isWhole: boolean;
  /** Whether it may have several segments. */
  readonly isDeep: boolean;
}

/** The path of a route. */
export interface DocumentPath {
  /** Such as `/iam/v2beta1/groups/{uid}`. */
  readonly template: string;
  readonly parameters: readonly PathParameter[];
}

/** Builds the paths of all routes, in their order. */
export function buildDocumentPaths(routes: readonly HttpBinding[]): DocumentPath[] {
  const named = new Map<string, string[][]>();
  for (const route of routes) {
    const shape = textOf(route, []);
    named.set(shape, [...(named.get(shape) ?? []), slotsOf(route).map(({ base }) => base)]);
  }
  return routes.map((route) => {
    const names = makeUnique(selectMostUsed(named.get(textOf(route, [])) ?? []));
    const parameters = slotsOf(route).map(({ base, ...slot }, i) => ({ ...slot, name: names[i] ?? base }));
    return { template: textOf(route, names), parameters };
  });
}

type Slot = Omit<PathParameter, "name"> & { readonly base: string };

// One for each wildcard. If a variable has several, each is a part of the value and gets a number.
function slotsOf({ template, variables }: HttpBinding): Slot[] {
  return template.segments.flatMap((segment, index): Slot[] => {
    if (segment.kind === "literal") return [];
    const isDeep = segment.kind === "star2";
    const at = template.variables.findIndex(({ first, last }) => first <= index && index <= last);
    const span = template.variables[at];
    const field = variables[at]?.field;
    if (span === undefined || field === undefined)
      return [{ base: "segment", field: undefined, isWhole: false, isDeep }];
    return [{ base: field.name, field, isWhole: span.first === span.last, isDeep }];
  });
}

// For each position the name that occurs most often, and of several the first.
function selectMostUsed(rows: readonly (readonly string[])[]): string[] {
  return (rows[0] ?? []).map((_, index) => {
    const counts = new Map<string, number>();
    for (const row of rows) {
      const name = row[index] ?? "";
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
  });
}

function makeUnique(bases: readonly string[]): string[] {
  const names: string[] = [];
  for (const base of bases) {
    let name = base;
    for (let n = 2; names.includes(name); n++) name = `${base}_${n}`;
    names.push(name);
  }
  return names;
}

function textOf({ template }: HttpBinding, names: readonly string[]): string {
  let slot = 0;
  const segments = template.segments.map((segment) =>
    segment.kind === "literal" ? segment.text : `{${names[slot++] ?? ""}}`,
  );
  const end = template.trailingSlash ? "/" : template.verb === undefined ? "" : `:${template.verb}`;
  return `/${segments.join("/")}${end}`;
}
