// Path templates of google.api.http as OpenAPI writes them: one parameter per
// wildcard. OpenAPI knows paths by their shape, so routes that differ in the
// names of their variables alone share a path and the names its first route gives.
import type { DescField } from "@bufbuild/protobuf";
import type { HttpBinding } from "../binding.js";

/** A parameter of a path. */
export interface PathParameter {
  readonly name: string;
  /** The field that the parameter sets, or a part of whose value it is; undefined when it sets none. */
  readonly field: DescField | undefined;
  /** Whether the parameter is all of the field's value. */
  readonly isWhole: boolean;
  /** Whether it may be several segments of a path, with the slashes between them. */
  readonly isDeep: boolean;
}

/** The path of a route. */
export interface DocumentPath {
  /** Such as `/iam/v2beta1/groups/{uid}`. */
  readonly template: string;
  readonly parameters: readonly PathParameter[];
}

/** Works out the paths of all routes, in their order. */
export function documentPathsOf(routes: readonly HttpBinding[]): DocumentPath[] {
  const names = new Map<string, readonly string[]>();
  return routes.map((route) => {
    const slots = slotsOf(route);
    const shape = textOf(route, []);
    const known = names.get(shape) ?? uniqueNames(slots);
    names.set(shape, known);
    const parameters = slots.map(({ base, ...slot }, i) => ({ ...slot, name: known[i] ?? base }));
    return { template: textOf(route, known), parameters };
  });
}

type Slot = Omit<PathParameter, "name"> & { readonly base: string };

// One per wildcard. Of a variable with several, each is a part of the value and gets a number.
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

function uniqueNames(slots: readonly Slot[]): string[] {
  const names: string[] = [];
  for (const { base } of slots) {
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
  return `/${segments.join("/")}${template.verb === undefined ? "" : `:${template.verb}`}`;
}
