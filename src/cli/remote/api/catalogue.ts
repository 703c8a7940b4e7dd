// The methods of the API by their names. They come from the image of the protos and not from generated code, so a method
// that is added to the protos is here without a line of code.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createFileRegistry, type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { closestMatch } from "leven";
import { Health } from "#gen/health/v1/health_pb.js";
import { invalidFlag } from "../../errors.js";
import { formatMethod } from "../methods.js";

// The same path from `src` and from `dist`.
const IMAGE = fileURLToPath(new URL("../../../../gen/api.binpb", import.meta.url));

/** Reads the methods of all versions, in the order of their names. */
export function readMethods(): DescMethod[] {
  const image = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(IMAGE)));
  const services = [...image].filter((desc) => desc.kind === "service");
  const methods = [...services, Health].flatMap((service) => service.methods);
  return methods.sort((a, b) => (formatMethod(a) < formatMethod(b) ? -1 : 1));
}

/**
 * Finds the method with a name.
 *
 * @param name the full name, or the end of it from the beginning of a word on; dots and slashes are the same. Version 2
 * precedes its beta, which has the same methods.
 * @throws CommandError INVALID_ARGUMENT when there is no such method, or more than one
 */
export function findMethod(methods: readonly DescMethod[], name: string): DescMethod {
  const wanted = `.${toDots(name)}`;
  const found = methods.filter((method) => `.${toDots(formatMethod(method))}`.endsWith(wanted));
  const stable = found.filter((method) => !isBeta(method) || !found.some((one) => isBetaOf(method, one)));
  const [method, ...others] = stable;
  if (method === undefined) {
    const suggestion = suggestMethod(methods, name);
    const hint =
      suggestion === undefined
        ? "see `arbor api list`, or name a capability such as groups.create"
        : `did you mean ${suggestion}?`;
    throw invalidFlag("method", `there is no method ${name}: ${hint}`);
  }
  if (others.length === 0) return method;
  throw invalidFlag("method", `${name} is the end of several names: ${stable.map(formatMethod).join(", ")}`);
}

/** The proportion of characters that may differ from a name that is suggested. */
const MAX_DIFFERENCE = 0.3;

/** Finds the method that was probably meant, by the service and the method in its name; undefined for none. */
function suggestMethod(methods: readonly DescMethod[], name: string): string | undefined {
  const words = toDots(name).split(".").slice(-2);
  const names = new Map(
    methods.map(({ parent, name: method }) => [
      [parent.name, method].slice(-words.length).join("."),
      `${parent.name}/${method}`,
    ]),
  );
  const word = words.join(".");
  const closest = closestMatch(word, [...names.keys()], { maxDistance: Math.ceil(word.length * MAX_DIFFERENCE) });
  return closest === undefined ? undefined : names.get(closest);
}

function toDots(name: string): string {
  return name.replaceAll("/", ".").replace(/^\.+/, "");
}

function isBeta({ parent }: DescMethod): boolean {
  return parent.typeName.includes(".v2beta1.");
}

/** Whether a method of the beta of version 2 is one of version 2 under another name. */
export function isBetaOf(beta: DescMethod, stable: DescMethod): boolean {
  return isBeta(beta) && formatMethod(beta).replace(".v2beta1.", ".v2.") === formatMethod(stable);
}
