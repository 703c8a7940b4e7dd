// A workload exchanges its token, creates a group, binds a role, lists groups, and reads a typed error. See README.md.
import {
  type Client,
  Code,
  ConnectError,
  connectTo,
  exchangedToken,
  fieldViolations,
  tokenFile,
} from "@arbor-platform/client";
import { type Group, GroupsService } from "@arbor-platform/client/gen/chainguard/platform/iam/v2/groups_pb.js";
import { RoleBindingsService } from "@arbor-platform/client/gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { RolesService } from "@arbor-platform/client/gen/chainguard/platform/iam/v2/roles_pb.js";

const baseUrl = variable("ARBOR_API");
const identity = variable("IDENTITY");
const parent = variable("GROUP");

// The token is exchanged at the first call, and again before it expires.
const upstream = tokenFile(variable("TOKEN_FILE")).token;
const arbor = connectTo({ baseUrl, token: exchangedToken({ issuer: baseUrl, audience: baseUrl, identity, upstream }) });
const groups = arbor.client(GroupsService);

const created = await groups.createGroup({
  parent,
  group: { name: "team of typescript", description: "made by an example" },
});
console.log("exchanged a token");
console.log(`created ${created.uid}`);

const { roles } = await arbor.client(RolesService).listRoles({ name: "viewer" });
const [viewer] = roles;
if (viewer === undefined) throw new Error("there is no role viewer");
const binding = await arbor
  .client(RoleBindingsService)
  .createRoleBinding({ parent: created.uid, roleBinding: { identityUid: identity, roleUid: viewer.uid } });
console.log(`bound the role viewer: ${binding.uid}`);

for await (const { name } of listChildren(groups, parent)) console.log(name);

try {
  await groups.createGroup({ parent, group: { name: "Not/Allowed" } });
  throw new Error("an error of the API was expected");
} catch (error) {
  if (!(error instanceof ConnectError) || error.code !== Code.InvalidArgument) throw error;
  for (const { description } of fieldViolations(error)) console.log(`INVALID_ARGUMENT: ${description}`);
}
arbor.close();

/** All groups directly below another, page by page. */
async function* listChildren(client: Client<typeof GroupsService>, childrenOf: string): AsyncGenerator<Group> {
  let pageToken = "";
  do {
    const page = await client.listGroups({ uidp: { childrenOf }, orderBy: "name", pageSize: 50, pageToken });
    yield* page.groups;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} must be set, see README.md`);
  return value;
}
