// What the commands about the delivery of events do.
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import {
  EventsService,
  GetStateRequestSchema,
  RedeliverRequestSchema,
  ResumeRequestSchema,
  SuspendRequestSchema,
  TestRequestSchema,
} from "#gen/arbor/events/v1/events_pb.js";
import { timestampOf } from "../../../kernel/time.js";
import { Code, CommandError, invalidFlag } from "../../errors.js";
import { formatResponse } from "../../output/format.js";
import { type CommonFlags, parseTimeRange } from "../flags.js";
import { toDetailRows } from "../iam/run.js";
import { withSession } from "../session.js";

const { getState, test: testMethod, suspend, resume, redeliver: redeliverMethod } = EventsService.method;

/** The commands `arbor events subscriptions VERB UID`. */
export const controls = {
  state: (uid: string, flags: CommonFlags) => printState(getState, create(GetStateRequestSchema, { uid }), flags),
  test: testSink,
  suspend: (uid: string, flags: CommonFlags) => printState(suspend, create(SuspendRequestSchema, { uid }), flags),
  resume: (uid: string, flags: CommonFlags) => printState(resume, create(ResumeRequestSchema, { uid }), flags),
};

/** The flags of `arbor events deliveries redeliver`. */
export interface RedeliverFlags extends CommonFlags {
  readonly subscription: string;
  readonly id?: string;
  /** A time, or how long ago. */
  readonly since?: string;
}

/**
 * `arbor events deliveries redeliver`.
 *
 * @throws CommandError INVALID_ARGUMENT unless exactly one of `--id` and `--since` is there; the error of the service
 */
export async function redeliver({ subscription, id = "", ...flags }: RedeliverFlags): Promise<void> {
  const { startMs } = parseTimeRange(flags);
  if ((id === "") === (startMs === undefined)) throw invalidFlag("--id", "give either --id or --since");
  const since = startMs === undefined ? undefined : timestampOf(startMs);
  const selection = since ? ({ case: "since", value: since } as const) : ({ case: "eventId", value: id } as const);
  const request = create(RedeliverRequestSchema, { subscription, selection });
  await printState(redeliverMethod, request, flags);
}

/**
 * `arbor events subscriptions test`.
 *
 * @throws CommandError UNAVAILABLE when the sink has not accepted the event; the error of the service
 */
async function testSink(uid: string, flags: CommonFlags): Promise<void> {
  await withSession(flags, async ({ call, output }) => {
    const response = await call(testMethod, create(TestRequestSchema, { uid }));
    const rows = () => toDetailRows(testMethod.output, response);
    await output.write(formatResponse(flags.output, response, rows, output.terminal));
    if (response.accepted !== true) {
      throw new CommandError(Code.Unavailable, `the sink has not accepted the event: ${String(response.error ?? "")}`);
    }
  });
}

async function printState(method: DescMethodUnary, request: Message, flags: CommonFlags): Promise<void> {
  await withSession(flags, async ({ call, output }) => {
    const response = await call(method, request);
    const rows = () => toDetailRows(method.output, response);
    await output.write(formatResponse(flags.output, response, rows, output.terminal));
  });
}
