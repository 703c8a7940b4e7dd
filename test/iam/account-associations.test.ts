// Account associations over REST: one per group, with the group's own uid.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { invalid } from "../contract/expectations.js";
import { identityRow } from "../support/rows.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const amazon = { account: "123456789012" };
const google = { projectId: "p", projectNumber: "any text" };

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const create = (body: object, group: string) => world.owner.rest("POST", `/accountAssociations/${group}`, body);
const createAssociation = async (
  body: object = { name: "accounts", description: "d", amazon, google },
): Promise<string> => {
  const group = await world.group();
  const { status, json, text } = await create(body, group);
  assert.equal(status, 200, text);
  assert.equal(json?.uid, group);
  return group;
};
const patch = (uid: string, body: object, mask?: string) =>
  world.owner.rest("PATCH", `/accountAssociations/${uid}${mask === undefined ? "" : `?updateMask=${mask}`}`, body);

describe("an association", () => {
  const cases: readonly { name: string; body: object; broken: readonly [string, string] }[] = [
    { name: "no name", body: { amazon }, broken: ["name", "name must match ^[a-z0-9 ._-]{1,}$: name is required"] },
    {
      name: "an account of letters",
      body: { name: "a", amazon: { account: "12345678901x" } },
      broken: ["amazon", "amazon.account must be 12 digits"],
    },
    {
      name: "no project",
      body: { name: "a", google: { projectNumber: "1" } },
      broken: ["google", "google.projectId is required"],
    },
    {
      name: "no project number",
      body: { name: "a", google: { projectId: "p" } },
      broken: ["google", "google.projectNumber is required"],
    },
    {
      name: "a project number of 257 characters",
      body: { name: "a", google: { projectId: "p", projectNumber: "x".repeat(257) } },
      broken: ["google", "google.projectNumber is required"],
    },
    {
      name: "a project number with a line break",
      body: { name: "a", google: { projectId: "p", projectNumber: "4\n2" } },
      broken: ["google", "google.projectNumber is required"],
    },
    {
      name: "no tenant",
      body: { name: "a", azure: { clientIds: { a: "b" } } },
      broken: ["azure", "azure.tenantId is required"],
    },
    {
      name: "an empty client",
      body: { name: "a", azure: { tenantId: "t", clientIds: { a: "" } } },
      broken: ["azure", "azure.clientIds must map names to values"],
    },
    {
      name: "an installation of number 0",
      body: { name: "a", github: { appInstallations: { 1: { installations: [{ installationId: "0" }] } } } },
      broken: ["github", "github.appInstallations must have positive installation ids"],
    },
    ...["0x1", " 1", "+1"].map((app) => ({
      name: `the app ${JSON.stringify(app)}`,
      body: { name: "a", github: { appInstallations: { [app]: {} } } },
      broken: [
        `github.appInstallations.${app}`,
        `github.appInstallations.${app} has a key that must be an integer between -9223372036854775808 and 9223372036854775807`,
      ] as [string, string],
    })),
  ];
  for (const { name, body, broken } of cases) {
    it(`with ${name} is rejected`, async () => {
      assert.deepEqual((await create(body, world.child)).outcome, invalid(broken));
    });
  }

  it("may name an account that others name too", async () => {
    await createAssociation({ name: "one", amazon });
    assert.equal(
      (await world.foreignOwner.rest("POST", `/accountAssociations/${world.foreign}`, { name: "two", amazon })).status,
      200,
    );
  });

  const updates: readonly { name: string; mask?: string; body: object; after: object }[] = [
    {
      name: "the keys present",
      body: { description: "" },
      after: { name: "accounts", description: "", amazon, google },
    },
    {
      name: "one account more",
      body: { azure: { tenantId: "t" } },
      after: { amazon, google, azure: { tenantId: "t", clientIds: {} } },
    },
    { name: "one account less", mask: "amazon", body: {}, after: { amazon: undefined, google } },
    {
      name: "a part of an account",
      mask: "google.projectId",
      body: { google: { projectId: "q" } },
      after: { google: { projectId: "q", projectNumber: "any text" } },
    },
    {
      name: "everything",
      mask: "*",
      body: { name: "n" },
      after: { name: "n", description: "", amazon: undefined, google: undefined },
    },
  ];
  for (const { name, mask, body, after: expected } of updates) {
    it(`changes by ${name}`, async () => {
      const uid = await createAssociation();
      const { json, text } = await patch(uid, body, mask);
      for (const [field, value] of Object.entries(expected)) assert.deepEqual(json?.[field], value, text);
      assert.deepEqual((await world.owner.rest("GET", `/accountAssociations/${uid}`)).json, json);
    });
  }

  it("lets only service principals directly in the group act for it", async () => {
    const group = await world.group();
    const rule = "ingester must be a service principal directly in the group";
    const principal = { relation: 4, relationship: { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" } };
    const [own, above, foreign] = [group, world.root, world.foreign].map((at) => randomIds.newUid(at)) as [
      string,
      string,
      string,
    ];
    await world.write(async (tx) => {
      for (const uid of [own, above, foreign]) await tx.table(identityKind).insert(identityRow(uid, principal));
    });
    const refused = [
      await world.identity(group),
      above,
      foreign,
      randomIds.newUid(group),
      randomIds.newUid(world.foreign),
      "nonsense",
    ];
    for (const uid of refused) {
      const { outcome } = await create({ name: "a", chainguard: { serviceBindings: { ingester: uid } } }, group);
      assert.deepEqual(outcome, invalid(["chainguard.serviceBindings.ingester", rule]), uid);
    }
    assert.equal((await create({ name: "a", chainguard: { serviceBindings: { ingester: own } } }, group)).status, 200);
  });

  it("reports the check of its accounts", async () => {
    const uid = await createAssociation({ name: "a", amazon });
    const check = async (providerType: string) =>
      (await world.owner.rest("POST", `/accountAssociations/${uid}:checkAccountAssociation`, { providerType })).json;
    assert.deepEqual(
      [(await check("ACCOUNT_PROVIDER_TYPE_AMAZON"))?.status, (await check("ACCOUNT_PROVIDER_TYPE_AMAZON"))?.reason],
      ["CHECK_STATUS_NOT_READY", "NOT_VERIFIED"],
    );
    assert.equal((await check("ACCOUNT_PROVIDER_TYPE_GOOGLE"))?.reason, "NOT_CONFIGURED");
    assert.equal(
      (await world.owner.rest("POST", `/accountAssociations/${uid}:checkAccountAssociation`, {})).status,
      400,
    );
  });

  it("is listed by group by default", async () => {
    const top = await world.group();
    const groups = [await world.group(top), await world.group(top), await world.group(top)];
    for (const [i, group] of groups.entries())
      assert.equal((await create({ name: ["b", "a", "b"][i] }, group)).status, 200);
    const list = async (query: string) => {
      const { json } = await world.owner.rest("GET", `/accountAssociations?uidp.descendants_of=${top}${query}`);
      return ((json?.accountAssociations ?? []) as { uid: string }[]).map(({ uid }) => uid);
    };
    const sorted = [...groups].sort();
    assert.deepEqual(await list(""), sorted);
    assert.deepEqual(await list("&order_by=group%20desc"), [...sorted].reverse());
    assert.deepEqual(await list("&name=a"), [groups[1]]);
    assert.equal((await list("&order_by=name"))[0], groups[1]);
    const count = async (filter: string) =>
      (await world.owner.rest("GET", `/accountAssociations?uidp.${filter}`)).json?.totalCount;
    assert.equal(await count(`descendants_of=${top}`), "3", "the group above has none itself");
    assert.equal((await create({ name: "above" }, top)).status, 200);
    assert.equal(await count(`descendants_of=${top}`), "3", "nor does its own count");
    assert.equal(await count(`children_of=${top}`), "3");
    assert.equal(await count(`descendants_of=${groups[0]}`), "0");
    assert.equal(await count(`ids=${top}`), "1");
    assert.equal((await world.owner.rest("GET", "/accountAssociations?order_by=amazon")).status, 400);
  });
});
