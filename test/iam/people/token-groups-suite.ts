// The groups that tokens of an identity provider state: they count until the directory of the provider sends somebody or something
// by SCIM, and never again. Run on both databases.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { signIn } from "../../../src/iam/people/sign-in.js";
import { readGrants } from "../../../src/issuer/sts/token-request.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { groupMappingKind } from "../../../src/store/iam/group-mappings.js";
import { scimGroupKind } from "../../../src/store/iam/scim-groups.js";
import { scimUserKind } from "../../../src/store/iam/scim-users.js";
import type { Store } from "../../../src/store/store.js";
import type { Tx } from "../../../src/store/transaction.js";
import { restAs } from "../../contract/rest.js";
import { directoryContext } from "../../support/directory-context.js";
import { deleteScimUser, insertProvider, insertScimGroup, insertScimUser } from "../../support/scim-people.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";

const issuer = "https://login.example";
const viewer = builtinRoleUid("viewer");

interface Sent {
  readonly name: string;
  readonly send: (tx: Tx, provider: string) => Promise<unknown>;
  /** Whether the groups of tokens count afterwards. */
  readonly counts: boolean;
}

const rows: readonly Sent[] = [
  { name: "nothing", send: async () => {}, counts: true },
  { name: "a person", send: (tx, provider) => insertScimUser(tx, provider), counts: false },
  { name: "a group", send: (tx, provider) => insertScimGroup(tx, provider), counts: false },
  {
    name: "a person whom it has deleted",
    send: async (tx, provider) => deleteScimUser(tx, (await insertScimUser(tx, provider, { externalId: "x" })).uid),
    counts: false,
  },
];

/** Registers the suite under `name`. */
export function tokenGroupsSuite(name: string): void {
  describe(name, () => {
    let world: IamWorld;
    let store: Store;
    before(async () => {
      world = await startIamWorld();
      ({ store } = world.harness.app.installation);
    });
    after(() => world.stop());

    /** A provider with a mapping at a group, and a person whose token names the mapping. */
    async function createPerson(enabled: boolean) {
      const setup = { issuer, enabled, defaultRole: "advisories.viewer", groupsClaim: "groups" };
      const provider = await world.write((tx) => insertProvider(tx, world.root, setup));
      const mapping = randomIds.newUid(provider);
      await world.write((tx) =>
        tx.table(groupMappingKind).insert({
          ...{ uid: mapping, providerUid: provider, externalGroupId: "eng", roleUid: viewer, scope: world.child },
          ...{ createdBy: world.owner.uid, createTimeMs: 1_000 },
        }),
      );
      const login = {
        ...{ issuer, subject: randomIds.newId(), claims: { groups: ["eng"] }, providerUid: provider, register: false },
      };
      const enter = () => world.write((tx) => signIn(tx, login, directoryContext()));
      const { identityUid: uid, mappings } = await enter();
      assert.deepEqual(mappings, [mapping]);
      return { provider, mapping, uid, enter, token: await world.harness.token(uid, mappings) };
    }

    type Person = Awaited<ReturnType<typeof createPerson>>;

    const question = () => `resource=${world.grandchild}&actions=groups.list`;

    // Where the mapping counts: of calls, of the caller's own answers, of an owner's, of names in token requests, and of a sign-in.
    async function findWhereCounted({ mapping, uid, enter, token }: Person) {
      const call = async (path: string, bearer = token, base = "/access/v1") => {
        const { status, text } = await restAs(world.url, bearer, base)("GET", path);
        return status === 403 ? false : status === 200 ? text : assert.fail(`${path}: ${status} ${text}`);
      };
      const says = async (path: string, bearer?: string) => String(await call(path, bearer)).includes(mapping);
      const ofOther = `identity=${uid}`;
      const grants = await store.read((tx) => readGrants(tx, { identityUid: uid, mappings: [mapping] }));
      return {
        call: (await call(`/groups/${world.grandchild}`, token, "/iam/v2")) !== false,
        check: String(await call(`/check?${question()}`)).includes('"allowed":true'),
        explanation: await says(`/explanation?${question()}`),
        list: await says("/grants"),
        explanationToOwner: await says(`/explanation?${question()}&${ofOther}`, world.owner.token),
        listToOwner: await says(`/grants?${ofOther}`, world.owner.token),
        tokenRequest: grants.some(({ groupUid }) => groupUid === world.child),
        signIn: (await enter()).mappings.length > 0,
      };
    }

    const everywhere = (counts: boolean) => ({
      ...{ call: counts, check: counts, explanation: counts, list: counts, explanationToOwner: counts },
      ...{ listToOwner: counts, tokenRequest: counts, signIn: counts },
    });

    for (const { name: row, send, counts } of rows) {
      for (const enabled of [true, false]) {
        it(`${counts ? "count" : "do not count"} once the directory has sent ${row}, SCIM ${enabled ? "on" : "off"}`, async () => {
          const person = await createPerson(enabled);
          assert.deepEqual(await findWhereCounted(person), everywhere(true));
          await world.write((tx) => send(tx, person.provider));
          assert.deepEqual(await findWhereCounted(person), everywhere(counts));
        });
      }
    }

    it("count for the people of one provider when another one has a directory", async () => {
      const [one, other] = [await createPerson(true), await createPerson(true)];
      await world.write((tx) => insertScimUser(tx, other.provider));
      assert.deepEqual(
        [await findWhereCounted(one), await findWhereCounted(other)],
        [everywhere(true), everywhere(false)],
      );
    });

    it("are known to count by one condition", async () => {
      const { provider } = await createPerson(true);
      const hasAny = () => store.read((tx) => tx.table(scimUserKind).hasAny(provider));
      assert.equal(await hasAny(), false);
      const { uid } = await world.write((tx) => insertScimGroup(tx, provider));
      assert.equal(await hasAny(), true);
      await world.write((tx) => tx.table(scimGroupKind).delete(uid));
      assert.equal(await hasAny(), false);
    });
  });
}
