// `arbor iam role-bindings set-end`.
import { create } from "@bufbuild/protobuf";
import { SetBindingEndRequestSchema, TemporaryBindingsService } from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import { timestampOf } from "../../../kernel/time.js";
import { invalidFlag } from "../../errors.js";
import { formatResponse } from "../../output/format.js";
import { type CommonFlags, parseExpiry } from "../flags.js";
import { withSession } from "../session.js";
import { toDetailRows } from "./run.js";

const { setBindingEnd } = TemporaryBindingsService.method;

/** The flags of `set-end`; one of both. */
export interface SetEndFlags extends CommonFlags {
  readonly expires?: string;
  readonly never?: boolean;
}

/**
 * `arbor iam role-bindings set-end`.
 *
 * @throws CommandError INVALID_ARGUMENT for both flags or none; the error of the service
 */
export async function setEndCommand(uid: string, { expires, never = false, ...flags }: SetEndFlags): Promise<void> {
  await withSession(flags, async ({ call, names, output }) => {
    const request = create(SetBindingEndRequestSchema, { uid });
    await names.resolve(setBindingEnd, request);
    if ((expires === undefined) !== never) throw invalidFlag("--expires", "give either --expires or --never");
    if (expires !== undefined) request.endTime = timestampOf(parseExpiry("--expires", expires));
    const response = await call(setBindingEnd, request);
    const rows = () => toDetailRows(setBindingEnd.output, response);
    await output.write(formatResponse(flags.output, response, rows, output.terminal));
  });
}
