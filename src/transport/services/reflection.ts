// gRPC server reflection, v1 and v1alpha, with which tools such as grpcurl call services without protos. Both versions
// have the same messages, so they share the responses.
import { createRegistry, type DescFile, type DescService, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { file_google_rpc_error_details as errorDetails } from "#gen/google/rpc/error_details_pb.js";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "#gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.js";
import { defineService, type ExtraService } from "./extra-service.js";

type Answer = MessageInitShape<typeof ServerReflectionResponseSchema>;
type Question = Pick<ServerReflectionRequest, "host" | "messageRequest">;

/**
 * Creates both versions of reflection. They describe `services`, themselves and the details of errors, which no method
 * refers to.
 *
 * @param stopping aborted when the service begins to stop, which ends the streams; their callers may leave them open
 * for ever
 */
export function createReflection(services: readonly DescService[], stopping?: AbortSignal): ExtraService[] {
  const served = [...services, ServerReflection, ServerReflectionAlpha];
  const files = collectImports([...served.map(({ file }) => file), errorDetails]);
  const response = createAnswerer(served, files);

  async function* answers(questions: AsyncIterable<Question>): AsyncIterable<Answer> {
    const iterator = questions[Symbol.asyncIterator]();
    let stop = () => {};
    const stopped = new Promise<undefined>((resolve) => {
      stop = () => resolve(undefined);
    });
    if (stopping?.aborted) stop();
    stopping?.addEventListener("abort", stop, { once: true });
    try {
      for (;;) {
        const next = await Promise.race([iterator.next(), stopped]);
        if (next === undefined || next.done === true) return;
        yield response(next.value);
      }
    } finally {
      stopping?.removeEventListener("abort", stop);
    }
  }

  // The messages of the two versions differ only in their names.
  type AlphaImpl = Parameters<typeof defineService<typeof ServerReflectionAlpha>>[1];
  return [
    defineService(ServerReflection, { serverReflectionInfo: answers }),
    defineService(ServerReflectionAlpha, { serverReflectionInfo: answers } as unknown as AlphaImpl),
  ];
}

function createAnswerer(served: readonly DescService[], files: ReadonlyMap<string, DescFile>) {
  const registry = createRegistry(...files.values());
  const symbols = new Map<string, DescFile>();
  for (const type of registry) {
    symbols.set(type.typeName, type.file);
    if (type.kind === "service")
      for (const method of type.methods) symbols.set(`${type.typeName}.${method.name}`, type.file);
  }
  const extensionsOf = (typeName: string) =>
    [...registry].filter((type) => type.kind === "extension" && type.extendee.typeName === typeName);

  return (question: Question): Answer => {
    const { host, messageRequest: ask } = question;
    const reply = (messageResponse: NonNullable<Answer["messageResponse"]>): Answer =>
      ({ validHost: host, originalRequest: { host, messageRequest: ask }, messageResponse }) as Answer;
    const file = (found: DescFile | undefined, what: string) =>
      found === undefined
        ? symbolNotFound(what)
        : reply({ case: "fileDescriptorResponse", value: { fileDescriptorProto: encodeWithImports(found) } });
    const symbolNotFound = (what: string) =>
      reply({
        case: "errorResponse",
        value: { errorCode: Code.NotFound, errorMessage: `Not found: ${what.slice(0, 200)}` },
      });

    switch (ask.case) {
      case "listServices":
        return reply({
          case: "listServicesResponse",
          value: { service: served.map(({ typeName }) => ({ name: typeName })) },
        });
      case "fileByFilename":
        return file(files.get(ask.value), ask.value);
      case "fileContainingSymbol":
        return file(symbols.get(ask.value), ask.value);
      case "fileContainingExtension": {
        const { containingType, extensionNumber } = ask.value;
        const found = extensionsOf(containingType).find((e) => e.kind === "extension" && e.number === extensionNumber);
        return file(found?.file, `${containingType} ${extensionNumber}`);
      }
      case "allExtensionNumbersOfType": {
        if (registry.getMessage(ask.value) === undefined) return symbolNotFound(ask.value);
        const numbers = extensionsOf(ask.value).flatMap((e) => (e.kind === "extension" ? [e.number] : []));
        return reply({
          case: "allExtensionNumbersResponse",
          value: { baseTypeName: ask.value, extensionNumber: numbers.sort((a, b) => a - b) },
        });
      }
      default:
        return reply({
          case: "errorResponse",
          value: { errorCode: Code.InvalidArgument, errorMessage: "Invalid argument: message_request is required" },
        });
    }
  };
}

// Clients build their types from one response, so it contains all imports of the file. The file itself is first, where
// some clients expect it.
function encodeWithImports(file: DescFile): Uint8Array[] {
  return [...collectImports([file]).values()].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
}

function collectImports(files: readonly DescFile[]): Map<string, DescFile> {
  const found = new Map<string, DescFile>();
  const visit = (file: DescFile): void => {
    if (found.has(file.proto.name)) return;
    found.set(file.proto.name, file);
    file.dependencies.forEach(visit);
  };
  files.forEach(visit);
  return found;
}
