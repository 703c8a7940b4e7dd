// Calls whose path names a method, `/package.Service/Method`, over gRPC, gRPC-Web and Connect.
import type { DescService } from "@bufbuild/protobuf";
import { createServiceRegistry, createTypeRegistry } from "../codec/type-registry.js";
import { type ApiError, connectErrorFrom, unimplemented } from "../kernel/errors.js";
import type { MethodEntry, MethodTable, MountedService } from "../pipeline/method-table.js";
import type { Limits } from "./http/limits/limits.js";
import type { Request } from "./http/request.js";
import { sendJson } from "./http/send.js";
import { createCompressor } from "./protocol/compression.js";
import { formatError } from "./protocol/connect.js";
import { Forms, httpMethodsOf } from "./protocol/forms.js";
import { binaryCodec, createJsonCodec } from "./protocol/message-codec.js";
import { createMountedBinaryCodec, createMountedJsonCodec } from "./protocol/mounted-codec.js";
import type { Serve } from "./serve.js";

export interface RpcOptions {
  readonly methods: MethodTable;
  /** Methods beside the table, such as health and reflection. */
  readonly extra: readonly MethodEntry[];
  readonly serve: Serve;
  readonly errorDomain: string;
  readonly limits: Limits;
}

/** A method that is served, and the forms of its calls. */
interface Target {
  readonly name: string;
  readonly entry: MethodEntry;
  readonly forms: Forms;
  /** The HTTP methods of its calls, as in an Allow header. */
  readonly allow: string;
}

const ACCEPT_POST =
  "application/json, application/proto, application/grpc-web+proto, application/grpc-web+json, application/grpc-web-text";

/** Serves RPC. */
export class Rpc {
  /** The names of all methods, `package.Service/Method`. */
  readonly names: readonly string[];
  readonly #targets = new Map<string, Target>();
  readonly #serve: Serve;
  readonly #errorDomain: string;
  readonly #own: Forms;

  constructor({ methods, extra, serve, errorDomain, limits }: RpcOptions) {
    this.#serve = serve;
    this.#errorDomain = errorDomain;
    const options = { compressor: createCompressor(limits), responseBytes: limits.responseBytes, errorDomain };
    const registry = createTypeRegistry([...methods.values()].filter(({ mounted }) => mounted === undefined));
    this.#own = new Forms(binaryCodec, createJsonCodec(registry), options);
    const mounted = new Map<DescService, Forms>();
    const formsOf = (service: MountedService): Forms => {
      const known = mounted.get(service.desc);
      if (known !== undefined) return known;
      const json = createMountedJsonCodec(createServiceRegistry(service.desc, service.registry));
      const forms = new Forms(createMountedBinaryCodec(), json, options);
      mounted.set(service.desc, forms);
      return forms;
    };
    for (const entry of methods.values()) this.#add(entry, entry.mounted ? formsOf(entry.mounted) : this.#own);
    for (const entry of extra) this.#add(entry, this.#own);
    this.names = [...this.#targets.values()].map(({ name }) => name);
  }

  #add(entry: MethodEntry, forms: Forms): void {
    const { path, desc } = entry;
    this.#targets.set(path, { name: path.slice(1), entry, forms, allow: httpMethodsOf(desc) });
  }

  /** Whether a method of any kind is served under this path. */
  serves(path: string): boolean {
    return this.#targets.has(path);
  }

  /** The name of the method under a path. */
  nameOf(path: string): string | undefined {
    return this.#targets.get(path)?.name;
  }

  /** The HTTP methods of the method under this path, as in an Allow header. */
  methodsOf(path: string): string | undefined {
    return this.#targets.get(path)?.allow;
  }

  /** Whether the method under this path takes a stream of requests, which may stay open. */
  takesStream(path: string): boolean {
    return this.#targets.get(path)?.entry.kind === "input_streaming";
  }

  /** Answers a call. Never throws. */
  handle(request: Request, path: string): void {
    const target = this.#targets.get(path);
    if (target === undefined) {
      this.refuse(request, path, noSuchMethod(path));
      return;
    }
    const { entry, forms, allow } = target;
    const { desc } = entry;
    if (request.method !== "POST" && !(request.method === "GET" && allow !== "POST")) {
      const takes = unimplemented(`method: ${desc.name} takes ${allow.replace(", ", " and ")}`);
      this.#reject(request, 405, takes, { allow });
      return;
    }
    const form = forms.find(request, desc);
    if (form === undefined) {
      const problem = unimplemented("content-type: not one this method takes");
      this.#reject(request, 415, problem, { "accept-post": ACCEPT_POST });
    } else if (desc.methodKind === "bidi_streaming" && request.httpVersion !== "2") {
      const cause = unimplemented("protocol: this method needs HTTP/2");
      // Connect prescribes the status, and clients of gRPC-Web read no other form than theirs.
      if (form.name === "connect") this.#reject(request, 505, cause);
      else this.#serve.refuse(request, form, cause);
    } else if (form.name === "grpc" && request.url !== path) {
      // A path of gRPC has no query.
      this.#serve.refuse(request, form, noSuchMethod(request.url));
    } else {
      void this.#serve.serve(request, form, entry);
    }
  }

  /** Answers with an error, in the form of the call, before anything of it is read. */
  refuse(request: Request, path: string, cause: ApiError): void {
    const target = this.#targets.get(path);
    const { forms } = target ?? { forms: this.#own };
    this.#serve.refuse(request, forms.findForError(request, target?.entry.desc), cause);
  }

  /** Answers a call of a method that is not served, in the form of the Connect protocol. */
  rejectUnknown(request: Request, path: string): void {
    this.#reject(request, 404, noSuchMethod(path));
  }

  // Answers what is no call of any form: a wrong HTTP method, media type or HTTP version.
  #reject(request: Request, status: number, cause: ApiError, fields: Record<string, string> = {}): void {
    request.record.setFailure(cause.code, cause.rejection);
    sendJson(request, status, formatError(connectErrorFrom(cause, this.#errorDomain)), fields);
  }
}

/** UNIMPLEMENTED, for RPC paths without a method. */
function noSuchMethod(path: string): ApiError {
  return unimplemented(`method: no such method ${path.slice(0, 200)}`);
}
