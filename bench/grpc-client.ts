// An independent client of GetGroup: load generators check HTTP only, so a client of grpc-js checks that calls succeed.
import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { GET_GROUP } from "./h2load.js";

/** The group as a client of grpc-js sees it. */
export function getGroup(url: string, token: string, uid: string): Promise<object> {
  const includeDirs = ["../proto", "../node_modules/google-proto-files"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  const definition = loadSync("chainguard/platform/iam/v2beta1/groups.proto", { includeDirs, longs: String });
  const methods = definition["chainguard.platform.iam.v2beta1.GroupsService"] as grpc.ServiceDefinition;
  const { requestSerialize, responseDeserialize } = methods.GetGroup as grpc.MethodDefinition<object, object>;
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(GET_GROUP, requestSerialize, responseDeserialize, { uid }, metadata, (error, response) => {
      client.close();
      if (error || response === undefined) reject(error);
      else resolve(response);
    });
  });
}
