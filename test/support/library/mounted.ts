// The library as the operator of a service mounts it: its HTTP rules and who may call it are given here alone.
import { createRegistry } from "@bufbuild/protobuf";
import { mount } from "../../../src/pipeline/mount.js";
import type { Mount, MountAccess, MountOptions } from "../../../src/pipeline/mount-options.js";
import { file_extra } from "./extra_pb.js";
import type { Library } from "./library.js";
import { LibraryService } from "./library_pb.js";

/** The HTTP rules of the library's methods. */
export const LIBRARY_RULES = {
  getBook: {
    get: "/library/v1/{name=books/*}",
    additionalBindings: [{ get: "/library/v1/{name=books/*}:title", responseBody: "title" }],
  },
  createBook: { post: "/library/v1/books", body: "book" },
  deleteBook: { delete: "/library/v1/{name=books/*}" },
  listBooks: { get: "/library/v1/groups/{group=**}/books" },
} as const;

/** Mounts it; everybody may call unless `options` says otherwise. */
export function mountLibrary(impl: Library, options: Partial<MountOptions<typeof LibraryService>> = {}): Mount {
  const access: MountAccess = "public";
  return mount(LibraryService, impl, { access, http: LIBRARY_RULES, registry: createRegistry(file_extra), ...options });
}
