// The ends of role bindings: `create --expires`, and the column of lists.
import { create, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  CreateTemporaryBindingRequestSchema,
  ListTemporaryBindingsRequestSchema,
  TemporaryBindingsService,
} from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import type { CreateRoleBindingRequest } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { timestampOf } from "../../../kernel/time.js";
import type { ListColumn } from "../../output/format.js";
import { parseExpiry } from "../flags.js";
import { type MethodCall, readRows } from "../method-call.js";

const { createTemporaryBinding, listTemporaryBindings } = TemporaryBindingsService.method;

const PAGE_SIZE = 200;
/** How many bindings that end a list looks up. */
const MAX_ENDS = 2_000;

/** Makes the request of a creation one of a binding that ends at the time of `--expires`. */
export function toTemporary(request: Message, expires: string) {
  const { parent, roleBinding } = request as CreateRoleBindingRequest;
  const endTime = timestampOf(parseExpiry("--expires", expires));
  const { identityUid = "", roleUid = "" } = roleBinding ?? {};
  return {
    method: createTemporaryBinding,
    request: create(CreateTemporaryBindingRequestSchema, { parent, identityUid, roleUid, endTime }),
  };
}

/** Describes how the end of a binding differs from that of `--expires`. */
export async function compareEnds(call: MethodCall, binding: JsonObject, expires: unknown): Promise<string[]> {
  const endTime = (await readEndColumn(call)).column.cell(binding);
  if (typeof expires === "string") {
    if (endTime === "") return ["it does not end"];
    return Date.parse(endTime) === parseExpiry("--expires", expires) ? [] : [`it ends at ${endTime}`];
  }
  return endTime === "" ? [] : [`it ends at ${endTime}`];
}

/** Reads the column with the ends of role bindings, and whether any ends. A service that does not know of ends has none. */
export async function readEndColumn(
  call: MethodCall,
): Promise<{ readonly column: ListColumn; readonly isSome: boolean }> {
  const ends = new Map<unknown, string>();
  try {
    const request = create(ListTemporaryBindingsRequestSchema, { pageSize: PAGE_SIZE });
    for await (const { uid, endTime } of readRows(call, listTemporaryBindings, request)) {
      ends.set(uid, String(endTime));
      if (ends.size === MAX_ENDS) break;
    }
  } catch {
    ends.clear();
  }
  const column = { title: "ENDS", kind: "time", cell: ({ uid }: JsonObject) => ends.get(uid) ?? "" } as const;
  return { column, isSome: ends.size > 0 };
}
