// Calls of methods that stream: of the platform, of health and reflection, and of the mounted service.
import { create, type DescMethod, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "#gen/health/v1/health_pb.js";
import { LibraryService } from "../../support/library/library_pb.js";
import type { Random } from "../../support/openapi/random.js";
import { streamForms, unaryForms } from "../../support/rpc-forms.js";
import type { Field } from "../wire/hpack.js";
import type { RpcCase } from "./rpc-requests.js";
import type { Contents } from "./world.js";

/** Ends a stream that would otherwise go on, soon enough for thousands of requests and late enough for it to begin. */
const SHORT_TIMEOUTS: readonly Field[] = [
  ["grpc-timeout", "250m"],
  ["connect-timeout-ms", "250"],
];
const LONG_TIMEOUTS: readonly Field[] = [
  ["grpc-timeout", "10S"],
  ["connect-timeout-ms", "10000"],
];
const WRONG_TIMEOUTS: readonly (readonly Field[])[] = [
  ["soon", "0S", "1.5S", "123456789S"].map((value): Field => ["grpc-timeout", value]),
  ["soon", "0", "1.5", "99999999999"].map((value): Field => ["connect-timeout-ms", value]),
];

function messageOf(method: DescMethod, init: object): Message {
  return create(method.input, init as MessageInitShape<DescMethod["input"]>);
}

/** A call of a stream of the stock service, or of a unary method of health. */
export function streamCase({ organisation, foreign, tokens }: Contents, random: Random): RpcCase {
  const owner = `Bearer ${tokens.owner}`;
  switch (random.int(8)) {
    case 0:
    case 1: {
      const method = random.pick<DescMethod>([AuditService.method.tailEvents, EventsService.method.tail]);
      const scope = random.pick([foreign, "", "no uid"]);
      // Where nothing is wrong, its time ends it.
      const isRight = random.chance(0.03);
      const wrong = WRONG_TIMEOUTS.map((fields) => random.pick(fields));
      const fields = isRight ? SHORT_TIMEOUTS : random.chance(0.5) ? wrong : LONG_TIMEOUTS;
      const messages = [messageOf(method, { scope: isRight ? organisation : scope })];
      return { method, messages, authorization: owner, forms: streamForms, fields };
    }
    case 2:
    case 3: {
      const method = Health.method.watch;
      const service = random.pick(["", "", "no.such.Service", "arbor.audit.v1.AuditService"]);
      const fields = random.chance(0.2) ? WRONG_TIMEOUTS.map((choices) => random.pick(choices)) : [];
      const messages = [messageOf(method, { service })];
      return { method, messages, authorization: undefined, forms: streamForms, fields, endless: true };
    }
    case 4: {
      const method = random.pick<DescMethod>([Health.method.check, Health.method.list]);
      const messages = [messageOf(method, { service: random.pick(["", "no.such.Service"]) })];
      return { method, messages, authorization: undefined, forms: unaryForms };
    }
    default: {
      const method = random.pick<DescMethod>([
        ServerReflection.method.serverReflectionInfo,
        ServerReflectionAlpha.method.serverReflectionInfo,
      ]);
      const messages = Array.from({ length: random.int(4) }, () =>
        messageOf(method, {
          host: "a",
          messageRequest: random.pick([
            { case: "listServices", value: "*" },
            { case: "fileContainingSymbol", value: "grpc.health.v1.Health" },
            { case: "fileContainingSymbol", value: "no.such.Symbol" },
            { case: "allExtensionNumbersOfType", value: "google.protobuf.MethodOptions" },
            { case: undefined },
          ]),
        }),
      );
      return { method, messages, authorization: undefined, forms: streamForms };
    }
  }
}

const ENDS = [
  "dune",
  "fields",
  "missing",
  "fields/missing",
  "busy",
  "limited",
  "unknown",
  "bug",
  "long",
  "fields/long",
];

/** A call of the mounted service. */
export function mountedCase({ organisation, foreign, tokens }: Contents, random: Random): RpcCase {
  const authorization = `Bearer ${tokens.owner}`;
  const { getBook, createBook, deleteBook, listBooks, returnBooks, ask } = LibraryService.method;
  const name = () => `books/${random.pick(ENDS)}`;
  const messages = (method: DescMethod, ...inits: object[]) => inits.map((init) => messageOf(method, init));
  const several = () => Array.from({ length: random.int(5) }, name);
  switch (random.int(8)) {
    case 0:
    case 1:
      return {
        method: getBook,
        messages: messages(getBook, { name: name() }),
        authorization: undefined,
        forms: unaryForms,
      };
    case 2: {
      const book = { book: { title: random.text("abc ü😀", 9), pages: 0 } };
      return { method: createBook, messages: messages(createBook, book), authorization, forms: unaryForms };
    }
    case 3:
      return {
        method: deleteBook,
        messages: messages(deleteBook, { name: "books/x" }),
        authorization,
        forms: unaryForms,
      };
    case 4:
    case 5: {
      const init = {
        group: random.pick([organisation, organisation, foreign, ""]),
        count: random.pick([0, 1, 3, 4, 7, 50]),
      };
      return { method: listBooks, messages: messages(listBooks, init), authorization, forms: streamForms };
    }
    case 6: {
      const inits = several().map((one) => ({ name: one }));
      return { method: returnBooks, messages: messages(returnBooks, ...inits), authorization, forms: streamForms };
    }
    default: {
      const inits = several().map((text) => ({ text }));
      return { method: ask, messages: messages(ask, ...inits), authorization: undefined, forms: streamForms };
    }
  }
}
