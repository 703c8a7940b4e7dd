// The message types that an Any or the details of an error may contain: those of the served methods, and google.rpc.
import {
  createRegistry,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Registry,
} from "@bufbuild/protobuf";
import {
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.js";
import { file_google_rpc_status } from "#gen/google/rpc/status_pb.js";

/** The default prefix of a type URL. */
export const TYPE_URL_PREFIX = "type.googleapis.com/";

/** Finds the type of a type URL, which is the part after its last slash. */
export function findType(registry: Registry, typeUrl: string): DescMessage | undefined {
  return registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
}

/**
 * Creates a registry of the types in all files that declare `methods`, in their imports, and in google.rpc.
 *
 * @param more further types, which take precedence over others of the same name
 */
export function createTypeRegistry(methods: Iterable<{ readonly desc: DescMethod }>, more?: Registry): Registry {
  const files = new Map<string, DescFile>();
  const collect = (file: DescFile): void => {
    if (files.has(file.name)) return;
    files.set(file.name, file);
    file.dependencies.forEach(collect);
  };
  [
    file_google_rpc_error_details,
    file_google_rpc_status,
    file_google_protobuf_any,
    file_google_protobuf_duration,
    file_google_protobuf_empty,
    file_google_protobuf_field_mask,
    file_google_protobuf_struct,
    file_google_protobuf_timestamp,
    file_google_protobuf_wrappers,
  ].forEach(collect);
  for (const method of methods) collect(method.desc.parent.file);
  return createRegistry(...files.values(), ...(more ?? []));
}

/** As {@link createTypeRegistry}, for all methods of one service. */
export function createServiceRegistry({ methods }: DescService, more?: Registry): Registry {
  return createTypeRegistry(
    methods.map((desc) => ({ desc })),
    more,
  );
}
