// The server of connect-node, answering GetGroup over gRPC with the same group from memory. Arguments: port, file with
// the group in JSON.
import { readFileSync } from "node:fs";
import { createServer } from "node:http2";
import { fromJson } from "@bufbuild/protobuf";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { GroupSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";

const [port, file] = process.argv.slice(2);
const group = fromJson(GroupSchema, JSON.parse(readFileSync(file, "utf8")));
const routes = (router) => router.service(GroupsService, { getGroup: () => group });

createServer(connectNodeAdapter({ routes })).listen(Number(port), "127.0.0.1", () => console.log("listening"));
