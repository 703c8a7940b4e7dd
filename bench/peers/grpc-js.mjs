// The usual gRPC server of Node, grpc-js, answering GetGroup with the same
// group from memory. Arguments: port, file with the group as proto-loader's JSON.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [port, file] = process.argv.slice(2);
const group = JSON.parse(readFileSync(file, "utf8"));
const includeDirs = ["../../proto", "../../node_modules/google-proto-files"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
const definition = loader.loadSync("chainguard/platform/iam/v2beta1/groups.proto", { includeDirs });
const { GroupsService } = grpc.loadPackageDefinition(definition).chainguard.platform.iam.v2beta1;

const server = new grpc.Server();
server.addService(GroupsService.service, { GetGroup: (_call, answer) => answer(null, group) });
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
  console.log("listening");
});
