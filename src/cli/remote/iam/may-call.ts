// Whether the caller may call methods, for commands that check that before they begin.
import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import { AccessService, CheckRequestSchema } from "#gen/arbor/access/v1/access_pb.js";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { CapabilitySchema } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { readOption } from "../../../codec/fields.js";
import type { MethodCall } from "../method-call.js";
import { formatEnumValue } from "./field-flags.js";

/** Whether something is allowed, and the capabilities that are missing. */
export interface Answer {
  readonly allowed: boolean;
  readonly missing: readonly string[];
}

/** Asks whether the caller may call methods at a resource, by the capabilities that they declare. */
export async function mayCall(
  call: MethodCall,
  methods: readonly DescMethodUnary[],
  resource: string,
): Promise<Answer> {
  const actions = [...new Set(methods.flatMap(listCapabilities))];
  if (actions.length === 0) return { allowed: true, missing: [] };
  const response = await call(AccessService.method.check, create(CheckRequestSchema, { actions, resource }));
  return { allowed: response.allowed === true, missing: (response.missingCapabilities ?? []) as string[] };
}

function listCapabilities(method: DescMethodUnary): string[] {
  const { mode } = readOption(method, iam) ?? {};
  const numbers = mode?.case === "enabled" ? mode.value.capabilities : [];
  return numbers.flatMap((number) => {
    const value = CapabilitySchema.value[number];
    return value === undefined ? [] : [formatEnumValue(value)];
  });
}
