// Updates of version 1 send every field: unchanged fields must need no rights of their own.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { type Rest, restAs } from "../../contract/rest.js";
import { identityRow } from "../../support/rows.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { viewer } from "../populate.js";

type Fields = Readonly<Record<string, unknown>>;

let world: IamWorld;
let owner: Rest;
before(async () => {
  world = await startIamWorld();
  owner = restAs(world.url, world.owner.token, "/iam/v1");
});
after(() => world.stop());

const createResource = async (path: string, body: object) => {
  const { status, json, text } = await owner("POST", path, body);
  assert.equal(status, 200, text);
  return String(json?.id ?? json?.group);
};
const findFirst = async (rest: Rest, query: string): Promise<Fields> => {
  const { json = {} } = await rest("GET", query);
  return (json.items as Fields[])[0] ?? {};
};
const insertIdentity = async (relation: number, relationship: object) => {
  const uid = randomIds.newUid(world.child);
  await world.write((tx) => tx.table(identityKind).insert(identityRow(uid, { relation, relationship })));
  return uid;
};
const principal = () => insertIdentity(4, { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" });

interface Kind {
  readonly name: string;
  readonly path: string;
  /** The filter of its list that finds one by its id. */
  readonly filter: string;
  /** May update these, and holds nothing of what they give. */
  readonly capabilities: readonly string[];
  readonly make: () => Promise<string>;
  /** A change that gives what the caller lacks. */
  readonly more: (read: Fields) => Promise<Fields>;
}

const kinds: readonly Kind[] = [
  {
    name: "a role",
    path: "/roles",
    filter: "id",
    capabilities: ["roles.update", "roles.list"],
    make: () => world.role(["groups.list", "groups.delete"]),
    more: async (read) => ({ ...read, capabilities: ["groups.delete"] }),
  },
  {
    name: "an identity provider",
    path: "/identityProviders",
    filter: "id",
    capabilities: ["identity_providers.update", "identity_providers.list", "role_bindings.create"],
    make: () => {
      const oidc = { issuer: "https://i.example", clientId: "c", clientSecret: "s", additionalScopes: ["email"] };
      return createResource(`/identityProviders/${world.root}`, { name: "login", defaultRole: viewer, oidc });
    },
    more: async (read) => ({ ...read, oidc: { ...(read.oidc as Fields), clientSecret: "other" } }),
  },
  {
    name: "an account association",
    path: "/account_associations",
    filter: "group",
    capabilities: ["account_associations.update", "account_associations.list"],
    async make() {
      const [group, ingester] = [world.child, await principal()];
      await world.harness.bind(ingester, "editor", group);
      return createResource(`/account_associations/${group}`, {
        name: "a",
        chainguard: { serviceBindings: { ingester } },
      });
    },
    async more(read) {
      const cosigned = await principal();
      await world.harness.bind(cosigned, "editor", world.child);
      const { serviceBindings } = read.chainguard as { serviceBindings: Fields };
      return { ...read, chainguard: { serviceBindings: { ...serviceBindings, cosigned } } };
    },
  },
  {
    name: "an identity",
    path: "/identities",
    filter: "id",
    capabilities: ["identity.update", "identity.list"],
    async make() {
      const uid = await world.identity(world.child);
      await world.harness.bind(uid, "editor", world.child);
      return uid;
    },
    more: async (read) => ({ ...read, claimMatch: { issuer: "https://i.example", subject: "caller" } }),
  },
];

describe("what was read can be sent back under another name", () => {
  for (const { name, path, filter, capabilities, make, more } of kinds) {
    it(`of ${name}, by who could not give what it gives`, async () => {
      const id = await make();
      const rest = restAs(world.url, (await world.caller(capabilities)).token, "/iam/v1");
      const read = () => findFirst(rest, `${path}?${filter}=${id}`);
      const before = await read();
      const { status, text } = await rest("PUT", `${path}/${id}`, { ...before, name: "renamed" });
      assert.equal(status, 200, text);
      const { updatedAt: _, ...kept } = before;
      const { updatedAt: __, ...after } = await read();
      assert.deepEqual(after, { ...kept, name: "renamed" });
      assert.equal((await rest("PUT", `${path}/${id}`, await more(before))).status, 403);
      assert.deepEqual(await read(), { ...after, updatedAt: (await read()).updatedAt });
    });
  }

  it("of an identity whose keys have expired", async () => {
    const expirationTime = new Date(Date.now() - 1_000).toISOString();
    const staticKeys = { issuer: "https://i.example", subject: "s", issuerKeys: "{}", expirationTime };
    const id = await insertIdentity(2, { staticKeys });
    const read = await findFirst(owner, `/identities?id=${id}`);
    const put = (body: object) => owner("PUT", `/identities/${id}`, body);
    const { status, json, text } = await put({ ...read, name: "renamed" });
    assert.equal(status, 200, text);
    assert.deepEqual([json?.name, json?.static], ["renamed", read.static]);
    const changed = await put({ ...read, static: { ...(read.static as Fields), subject: "t" } });
    assert.equal(changed.status, 400);
  });

  it("of an account association whose principal was deleted", async () => {
    const group = await world.group();
    const ingester = randomIds.newUid(group);
    const row = identityRow(ingester, {
      relation: 4,
      relationship: { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" },
    });
    await world.write((tx) => tx.table(identityKind).insert(row));
    const chainguard = { serviceBindings: { ingester } };
    await createResource(`/account_associations/${group}`, { name: "a", chainguard });
    await owner("DELETE", `/identities/${ingester}`);
    const put = (body: object) => owner("PUT", `/account_associations/${group}`, { name: "b", ...body });
    assert.equal((await put({ chainguard })).status, 200);
    assert.equal((await put({ chainguard: { serviceBindings: { other: ingester } } })).status, 400);
  });
});
