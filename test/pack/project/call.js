// A service that uses the client, and says what was loaded for it.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { connectTo, staticToken } from "arbor-platform/client";
import { GroupsService } from "arbor-platform/gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { resolved } from "./record.js";

const { BASE_URL, TOKEN, GROUP, EXTRA } = process.env;
if (EXTRA) await import(EXTRA);
const connection = connectTo({ baseUrl: BASE_URL, token: staticToken(TOKEN) });
const { name } = await connection.client(GroupsService).getGroup({ uid: GROUP });
connection.close();
// What `require` loaded does not pass the hooks, but stays in its cache.
const required = Object.keys(createRequire(import.meta.url).cache).map((path) => pathToFileURL(path).href);
console.log(JSON.stringify({ name, loaded: [...(await resolved()), ...required] }));
