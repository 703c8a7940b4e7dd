// The message types that can stand in an Any or in the details of an error:
// all that the served methods know, and google.rpc's.
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

/** What a type URL begins with where its sender gave no other host. */
export const TYPE_URL_PREFIX = "type.googleapis.com/";

/** The type that a type URL of an Any names: the part after its last slash. */
export function findType(registry: Registry, typeUrl: string): DescMessage | undefined {
  return registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
}

/**
 * A registry of the types of all files that declare `methods`, what those import, and google.rpc.
 *
 * @param more further types, which come before others of the same name
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
