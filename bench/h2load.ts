// The load generator h2load, for HTTP/1.1 and for gRPC.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { type Cpus, runLoad } from "./processes.js";

/** The path of the gRPC method under load. */
export const GET_GROUP = "/chainguard.platform.iam.v2beta1.GroupsService/GetGroup";

/** The result of one run. */
export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** The mean length of the responses without their headers. */
  readonly bytes: number;
}

/** Connections and the calls in flight on each of them. */
export interface Shape {
  readonly connections: number;
  readonly streams: number;
}

/** Writes the request for a group as a gRPC frame into a directory and returns the file. */
export function writeGetGroup(directory: string, uid: string): string {
  const message = toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const file = join(directory, "get-group.frame");
  writeFileSync(file, Buffer.concat([prefix, message]));
  return file;
}

/**
 * Loads a method of RPC over HTTP/2, always with the same message.
 *
 * @param url where the service listens
 * @param body a file that holds the message as the content type has it
 * @throws Error when any call fails
 */
export function loadRpc(
  url: string,
  token: string,
  type: string,
  body: string,
  shape: Shape,
  seconds: number,
  cpus?: Cpus,
) {
  const headers = [`content-type: ${type}`, "te: trailers", `authorization: Bearer ${token}`];
  const args = [`-m${shape.streams}`, "-d", body, ...headers.flatMap((header) => ["-H", header])];
  return h2load([...args, `${url}${GET_GROUP}`], shape.connections, seconds, cpus);
}

/** Loads a gRPC method, always with the same message; see {@link loadRpc}. */
export function loadGrpc(url: string, token: string, frame: string, shape: Shape, seconds: number, cpus?: Cpus) {
  return loadRpc(url, token, "application/grpc", frame, shape, seconds, cpus);
}

/**
 * Loads a service over HTTP/1.1 with requests of all addresses that a file lists: GET, or POST when there is a body.
 *
 * @param addresses a file with a URL per line
 * @param options.base replaces scheme, host and port of all addresses
 * @param options.body a file that holds JSON, sent with each request
 * @throws Error when any response is not 2xx
 */
export function loadHttp1(
  addresses: string,
  token: string,
  connections: number,
  seconds: number,
  { base, body, cpus }: { readonly base?: string; readonly body?: string | undefined; readonly cpus?: Cpus } = {},
) {
  const args = ["--h1", "-i", addresses, "-H", `authorization: Bearer ${token}`];
  if (base !== undefined) args.push("-B", base);
  if (body !== undefined) args.push("-d", body, "-H", "content-type: application/json");
  return h2load(args, connections, seconds, cpus);
}

/** The machine was so busy that the generator had no response by the end of its time. */
export class NoResponses extends Error {}

async function h2load(args: readonly string[], connections: number, seconds: number, cpus?: Cpus): Promise<LoadResult> {
  // h2load takes whole numbers of units.
  const duration = `${Math.round(seconds * 1000)}ms`;
  const output = await runLoad("h2load", ["-t1", `-c${connections}`, `-D${duration}`, ...args], cpus);
  const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  const requests = number(/(\d+) succeeded/);
  const requestsPerSecond = number(/finished in [\d.]+m?s, ([\d.]+) req/);
  if (requests === 0 && number(/(\d+) failed/) === 0) throw new NoResponses(`h2load: no answers\n${output}`);
  // A gRPC call that fails has a status and no message.
  const bytes = number(/\((\d+)\) data/) / requests;
  const failed = number(/(\d+) failed/) + number(/(\d+) 4xx/) + number(/(\d+) 5xx/);
  if (failed !== 0 || !(bytes > 100) || !(requestsPerSecond > 0)) throw new Error(`h2load: not all is well\n${output}`);
  return { requests, requestsPerSecond, bytes };
}
