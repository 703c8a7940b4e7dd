// People of a directory and the identities that sign in as them: who is linked with whom, who is kept out, and what a deactivated
// identity has left. Run on both databases.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { connectTo, staticToken } from "../../../src/client/index.js";
import { setIdentityActive } from "../../../src/iam/identities/deactivation.js";
import { getKnownPerson, previewSignIn, type SignIn, signIn } from "../../../src/iam/people/sign-in.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { builtinRoleUid, providerPersonUid, randomIds } from "../../../src/kernel/ids.js";
import { type IdentityRow, identityKind } from "../../../src/store/iam/identities.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { type ScimUserRow, scimUserKind } from "../../../src/store/iam/scim-users.js";
import type { Store } from "../../../src/store/store.js";
import type { Tx } from "../../../src/store/transaction.js";
import { precondition } from "../../contract/expectations.js";
import { restAs } from "../../contract/rest.js";
import { directoryContext } from "../../support/directory-context.js";
import { bindingRow } from "../../support/rows.js";
import {
  deleteScimUser,
  insertProvider,
  insertScimUser,
  type ProviderSetup,
  setScimUserActive,
} from "../../support/scim-people.js";
import { waitUntil } from "../../support/wait-until.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";

const issuer = "https://login.example";
const [viewer, owner] = ["viewer", "owner"].map(builtinRoleUid) as [string, string];

const persons = ["new", "registered", "linked"] as const;
const rows = ["none", "active", "inactive", "former", "of another"] as const;
type Person = (typeof persons)[number];
type Row = (typeof rows)[number];

/** What a sign-in must do: `linked` links the person, `deactivated` and `unknown` are refusals. */
type Outcome = "signed in" | "linked" | "deactivated" | "unknown";

// Stated by hand, row by row, for a provider that must have its people sent; undefined for what cannot be.
const expected: Readonly<Record<Row, Readonly<Record<Person, Outcome | undefined>>>> = {
  none: { new: "unknown", registered: "signed in", linked: undefined },
  active: { new: "linked", registered: "linked", linked: "linked" },
  inactive: { new: "deactivated", registered: "deactivated", linked: "deactivated" },
  former: { new: "deactivated", registered: "deactivated", linked: "deactivated" },
  "of another": { new: "unknown", registered: "signed in", linked: undefined },
};

/** Registers the suite under `name`. */
export function directoryPersonSuite(name: string): void {
  describe(name, () => {
    let world: IamWorld;
    let store: Store;
    before(async () => {
      world = await startIamWorld();
      ({ store } = world.harness.app.installation);
    });
    after(() => world.stop());

    let count = 0;
    const newId = () => `person-${count++}`;
    const provide = (setup: Partial<ProviderSetup> = {}, group = world.root) =>
      world.write((tx) => insertProvider(tx, group, { issuer, ...setup }));
    const send = (provider: string, values: Partial<ScimUserRow> = {}) =>
      world.write((tx) => insertScimUser(tx, provider, values));
    const read = <T>(unit: (tx: Tx) => Promise<T>) => store.read(unit);
    const findUser = (uid: string) => read((tx) => tx.table(scimUserKind).find(uid));
    const findPerson = (uid: string) => read((tx) => tx.table(identityKind).find(uid));
    const uidOf = (provider: string, subject: string) => providerPersonUid(provider, issuer, subject);

    const buildLogin = (providerUid: string, subject: string, claims: SignIn["claims"] = {}): SignIn => ({
      ...{ issuer, subject, claims, providerUid, register: false },
    });
    const enter = async (login: SignIn) =>
      (await world.write((tx) => signIn(tx, login, directoryContext()))).identityUid;
    const refusalOf = async (work: () => Promise<unknown>): Promise<Outcome | undefined> => {
      try {
        await work();
        return undefined;
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
        assert.equal(error.reason, "PERMISSION_DENIED");
        assert.match(
          error.message,
          error.rejection === "person_deactivated" ? /deactivated this account/ : /directory/,
        );
        return error.rejection === "person_deactivated" ? "deactivated" : "unknown";
      }
    };
    const outcomeOf = async (login: SignIn): Promise<Outcome> => {
      const refusal = await refusalOf(() => enter(login));
      if (refusal !== undefined) return refusal;
      const linked = await read((tx) =>
        tx.table(scimUserKind).findByIdentity(uidOf(login.providerUid ?? "", login.subject)),
      );
      return linked === undefined ? "signed in" : "linked";
    };

    describe("a sign-in", () => {
      for (const rule of [undefined, "sub", "oid"] as const) {
        for (const enabled of [true, false]) {
          for (const defaultRole of [undefined, "viewer"]) {
            it(`by ${rule ?? "no rule"}, SCIM ${enabled ? "on" : "off"}, default role ${defaultRole ?? "none"}`, async () => {
              const provider = await provide({ rule, enabled, defaultRole });
              for (const row of rows) for (const person of persons) await attempt(provider, { rule, row, person });

              async function attempt(uid: string, { row, person }: { rule: typeof rule; row: Row; person: Person }) {
                const stated = expected[row][person];
                if (stated === undefined) return;
                // Without SCIM, and with a default role, people whom no directory has sent may register.
                const mayRegister = row === "none" && (!enabled || defaultRole !== undefined);
                const outcome = stated === "unknown" && mayRegister ? "signed in" : stated;
                const [subject, externalId] = [newId(), newId()];
                const key = rule === "oid" ? externalId : subject;
                const login = buildLogin(uid, subject, { oid: externalId });
                const what = `${row} row, ${person} person`;
                if (person !== "new") {
                  if (person === "linked") await send(uid, { externalId: key });
                  // A provider that lets nobody register has people from before.
                  else await setScim(uid, false);
                  await enter(login);
                  await setScim(uid, enabled);
                }
                await arrange(uid, key, row);
                const before = await findPerson(uidOf(uid, subject));
                const isRefused = outcome === "deactivated" || outcome === "unknown";
                const refusal = isRefused ? outcome : undefined;
                const preview = () => read((tx) => previewSignIn(tx, login, Date.now()));
                assert.equal(await refusalOf(preview), refusal, `${what}: preview`);
                const exchange = await refusalOf(() => read((tx) => getKnownPerson(tx, login))).catch(
                  () => "sign in first",
                );
                assert.equal(
                  exchange,
                  refusal ?? (person === "new" ? "sign in first" : undefined),
                  `${what}: exchange`,
                );
                assert.equal(await outcomeOf(login), outcome, what);
                // Again, and with nothing changed by a refusal.
                assert.equal(await outcomeOf(login), outcome, `${what}, again`);
                const after = await findPerson(uidOf(uid, subject));
                if (isRefused) assert.deepEqual(after, before, what);
                else assert.notEqual(after, undefined, what);
                if (person === "new" && !isRefused) {
                  const roles = await read((tx) => tx.table(roleBindingKind).findByIdentity(uidOf(uid, subject)));
                  assert.deepEqual(
                    roles.map(({ roleUid }) => roleUid),
                    defaultRole ? [viewer] : [],
                    what,
                  );
                }
              }
            });
          }
        }
      }

      async function setScim(uid: string, enabled: boolean): Promise<void> {
        await world.write(async (tx) => {
          const row = await tx.table(identityProviderKind).find(uid);
          if (row) await tx.table(identityProviderKind).replace({ ...row, scim: { ...row.scim, enabled } });
        });
      }

      // Makes the row of the external id what it is called.
      async function arrange(provider: string, externalId: string, row: Row): Promise<void> {
        const stored = await read((tx) => tx.table(scimUserKind).findByExternalId(provider, externalId));
        if (row === "none") return;
        if (row === "of another") {
          const other = randomIds.newUid();
          await world.write((tx) => insertScimUser(tx, provider, { externalId, identityUid: other }));
          return;
        }
        const { uid } = stored ?? (await send(provider, { externalId }));
        if (row === "inactive") await world.write((tx) => setScimUserActive(tx, uid, false));
        if (row === "former") await world.write((tx) => deleteScimUser(tx, uid));
      }
    });

    describe("a link", () => {
      it("is made by the external id alone, whatever else is the same", async () => {
        const provider = await provide();
        const [victim, thief] = [newId(), newId()];
        const { uid } = await send(provider, {
          ...{ userName: thief, externalId: victim, displayName: "The Boss" },
          attributes: { emails: [{ value: "boss@example.org", primary: true }], nickName: thief },
        });
        const claims = {
          ...{
            preferred_username: thief,
            upn: thief,
            email: "boss@example.org",
            email_verified: true,
            name: "The Boss",
          },
          ...{ oid: victim, externalId: victim, user_name: victim, userName: victim },
        };
        const attempts = [
          thief,
          victim.toUpperCase(),
          `${victim} `,
          ` ${victim}`,
          `${victim}\u200b`,
          `${victim}%`,
          victim.replace("-", "_"),
          victim.replace("e", "е"),
        ];
        for (const phase of ["before the first sign-in", "after it"]) {
          for (const subject of attempts) {
            const refused = await refusalOf(() => enter(buildLogin(provider, subject, claims)));
            assert.equal(refused, "unknown", `${JSON.stringify(subject)} ${phase}`);
          }
          const before = (await findUser(uid))?.identityUid;
          assert.equal(before, phase === "after it" ? uidOf(provider, victim) : null);
          // The control: the right subject, without any other claim.
          assert.equal(await outcomeOf(buildLogin(provider, victim)), "linked", phase);
        }
      });

      it("needs a text where the provider says `oid`", async () => {
        const provider = await provide({ rule: "oid" });
        await send(provider, { externalId: "17" });
        await send(provider, { externalId: "true" });
        await send(provider, { externalId: "[object Object]" });
        await send(provider, { externalId: "\ufffd" });
        const values = [17, true, ["17"], { toString: "17" }, null, undefined, "", "17.0", "017", "\ud800", "17\0"];
        for (const oid of values) {
          const refused = await refusalOf(() => enter(buildLogin(provider, newId(), { oid })));
          assert.equal(refused, "unknown", JSON.stringify(oid));
        }
        // Nor is the subject a substitute, or a claim that objects have anyway.
        assert.equal(await refusalOf(() => enter(buildLogin(provider, "17"))), "unknown");
        assert.equal(await refusalOf(() => enter(buildLogin(provider, "17", Object.create({ oid: "17" })))), "unknown");
        assert.equal(await outcomeOf(buildLogin(provider, newId(), { oid: "17" })), "linked");
      });

      it("is not found by another provider, of the same organisation or of another", async () => {
        const id = newId();
        const provider = await provide();
        const { uid } = await send(provider, { externalId: id });
        const others = [await provide(), await provide({ enabled: false }), await provide({}, world.foreign)];
        await world.write((tx) => deleteScimUserLater(tx));
        async function deleteScimUserLater(tx: Tx): Promise<void> {
          // One who was deleted elsewhere is not kept out here either.
          await deleteScimUser(tx, (await insertScimUser(tx, others[1] ?? "", { externalId: `${id}-gone` })).uid);
        }
        const [same, off, foreign] = others as [string, string, string];
        for (const phase of ["before", "after"]) {
          assert.equal(await refusalOf(() => enter(buildLogin(same, id))), "unknown", phase);
          assert.equal(await refusalOf(() => enter(buildLogin(foreign, id))), "unknown", phase);
          assert.equal(await outcomeOf(buildLogin(off, id)), "signed in", phase);
          assert.equal(
            (await findUser(uid))?.identityUid ?? null,
            phase === "after" ? uidOf(provider, id) : null,
            phase,
          );
          assert.equal(await outcomeOf(buildLogin(provider, id)), "linked", phase);
        }
        assert.equal(await refusalOf(() => enter(buildLogin(provider, `${id}-gone`))), "unknown");
        assert.equal(await refusalOf(() => enter(buildLogin(off, `${id}-gone`))), "deactivated");
      });

      it("stays, whatever the key of the person says later", async () => {
        const provider = await provide({ rule: "oid" });
        const [first, second] = [
          await send(provider, { externalId: newId() }),
          await send(provider, { externalId: newId() }),
        ];
        const subject = newId();
        const login = (oid: string) => buildLogin(provider, subject, { oid });
        assert.equal(await outcomeOf(login(first.externalId)), "linked");
        assert.equal(await outcomeOf(login(second.externalId)), "linked");
        assert.equal(await outcomeOf(login("nobody")), "linked");
        assert.equal((await findUser(first.uid))?.identityUid, uidOf(provider, subject));
        assert.equal((await findUser(second.uid))?.identityUid, null);
        // Another subject with the same `oid`, as after a change of the client at some providers.
        assert.equal(await refusalOf(() => enter(buildLogin(provider, newId(), { oid: first.externalId }))), "unknown");
        // The link leaves the resource of the directory as it was.
        assert.deepEqual(await findUser(first.uid), { ...first, identityUid: uidOf(provider, subject) });
        // And the linked row counts, not the one of the key.
        await world.write((tx) => setScimUserActive(tx, second.uid, false));
        assert.equal(await outcomeOf(login(second.externalId)), "linked");
        await world.write((tx) => setScimUserActive(tx, first.uid, false));
        assert.equal(await outcomeOf(login("nobody")), "deactivated");
      });

      it("accepts the bindings that wait for the person", async () => {
        const provider = await provide();
        const { externalId } = await send(provider, { externalId: newId() });
        const uid = uidOf(provider, externalId);
        const binding = bindingRow(randomIds.newUid(world.child), uid, viewer, { pending: true });
        await world.write((tx) => tx.table(roleBindingKind).insert(binding));
        assert.equal(await outcomeOf(buildLogin(provider, externalId)), "linked");
        assert.equal((await read((tx) => tx.table(roleBindingKind).find(binding.uid)))?.pending, false);
      });
    });

    /** Somebody who has signed in as a person of a directory. */
    async function createMember(group = world.root, role?: string) {
      const provider = await provide({}, group);
      const row = await send(provider, { externalId: newId() });
      const login = buildLogin(provider, row.externalId);
      const uid = await enter(login);
      if (role !== undefined) await world.harness.bind(uid, role, group);
      const token = await world.harness.token(uid);
      return { provider, row, login, uid, token, rest: restAs(world.url, token) };
    }
    const deactivate = (uid: string, active = false) => world.write((tx) => setScimUserActive(tx, uid, active));

    describe("a deactivated identity", () => {
      it("has no valid token, and keeps what it is bound to", async () => {
        const { row, login, uid, token, rest } = await createMember(world.root, "viewer");
        const path = `/groups/${world.root}`;
        assert.equal((await rest("GET", path)).status, 200);
        await deactivate(row.uid);
        for (const one of [path, "/groups", "/roles"]) assert.equal((await rest("GET", one)).status, 401, one);
        assert.equal((await restAs(world.url, token, "/auth/v1")("GET", "/ok")).status, 401);
        assert.equal((await restAs(world.url, token, "/sessions/v1")("GET", "/sessions")).status, 401);
        await assert.rejects(world.harness.token(uid), /deactivated this account/);
        const bindings = await read((tx) => tx.table(roleBindingKind).findByIdentity(uid));
        assert.equal(bindings.length, 1);
        // Repeats change nothing.
        const before = await findPerson(uid);
        await deactivate(row.uid);
        assert.deepEqual(await findPerson(uid), before);
        await deactivate(row.uid, true);
        await deactivate(row.uid, true);
        assert.equal((await rest("GET", path)).status, 401, "a token of before is valid again");
        assert.equal(await outcomeOf(login), "linked");
        const renewed = restAs(world.url, await world.harness.token(uid));
        assert.equal((await renewed("GET", path)).status, 200);
      });

      it("has no stream that goes on", async () => {
        const { row, token } = await createMember(world.root, "owner");
        const connection = connectTo({ baseUrl: world.url, token: staticToken(token) });
        let [events, failure] = [0, ""];
        const stream = (async () => {
          for await (const _ of connection.client(AuditService).tailEvents({ scope: world.root })) events++;
        })().catch((error: unknown) => {
          failure = String(error);
        });
        await waitUntil(() => events > 0);
        await deactivate(row.uid);
        // A stream looks at rights before each event.
        await world.owner.rest("POST", `/groups/${world.root}`, { name: `wakes ${newId()}` });
        await waitUntil(() => failure !== "");
        assert.match(failure, /unauthenticated/);
        await stream;
        connection.close();
      });

      it("is in no answer about rights of its organisation", async () => {
        const { row, uid } = await createMember(world.root, "viewer");
        const access = restAs(world.url, world.owner.token, "/access/v1");
        const action = "chainguard.platform.iam.v2.GroupsService.GetGroup";
        const ask = async () => {
          const subjects = await access("GET", `/subjects?resource=${world.root}&actions=${action}&pageSize=200`);
          const grants = await access("GET", `/grants?identity=${uid}`);
          assert.deepEqual([subjects.status, grants.status], [200, 200]);
          return [subjects.text.includes(uid), grants.text.includes(viewer)];
        };
        assert.deepEqual(await ask(), [true, true]);
        await deactivate(row.uid);
        assert.deepEqual(await ask(), [false, false]);
        await deactivate(row.uid, true);
        assert.deepEqual(await ask(), [true, true]);
      });

      it("invites nobody", async () => {
        const { row, rest } = await createMember(world.root, "owner");
        const invite = { roleUid: viewer, ttl: "3600s" };
        const made = await rest("POST", `/groupInvites/${world.root}`, invite);
        assert.equal(made.status, 200, made.text);
        const code = String(made.json?.code);
        const guest = { issuer, subject: newId(), claims: {}, register: false };
        const preview = () => read((tx) => previewSignIn(tx, { ...guest, invite: code }, Date.now()));
        assert.notEqual(await preview(), undefined);
        await deactivate(row.uid);
        await assert.rejects(preview(), /accepting this invite/);
      });

      it("is no owner: an organisation keeps one that is active", async () => {
        const { group } = await world.harness.organisation(newId());
        const kept = precondition("OWNER_REQUIRED", "a root group must keep an owner");
        const [first, second] = [await createMember(group, "owner"), await createMember(group, "owner")];
        const bindings = () => read((tx) => tx.table(roleBindingKind).findByIdentity(first.uid));
        const byHost = (await read((tx) => tx.table(roleBindingKind).findHolders(group, owner, 10))).find(
          (uid) => uid !== first.uid && uid !== second.uid,
        );
        await world.write(async (tx) => {
          for (const { uid } of await tx.table(roleBindingKind).findByIdentity(byHost ?? "")) {
            await tx.table(roleBindingKind).delete(uid);
          }
        });
        const counts = () => read((tx) => tx.table(roleBindingKind).countHolders(group, owner));
        assert.equal(await counts(), 2);
        await deactivate(second.row.uid);
        assert.equal(await counts(), 1);
        const before: IdentityRow | undefined = await findPerson(first.uid);
        const attempt = world.write((tx) => setIdentityActive(tx, first.uid, false, Date.now()));
        await assert.rejects(attempt, (error: ApiError) => error.message.includes("must keep an owner"));
        assert.deepEqual(await findPerson(first.uid), before);
        const [binding] = await bindings();
        assert.deepEqual((await first.rest("DELETE", `/roleBindings/${binding?.uid}`)).outcome, kept);
        assert.deepEqual(
          (await first.rest("PATCH", `/roleBindings/${binding?.uid}`, { roleUid: viewer })).outcome,
          kept,
        );
        // The control: with the other one again.
        await deactivate(second.row.uid, true);
        await deactivate(first.row.uid);
        assert.equal(await counts(), 1);
      });

      it("may be one that does not exist, or is being deleted", async () => {
        const gone = randomIds.newUid();
        await world.write((tx) => setIdentityActive(tx, gone, false, Date.now()));
        const { uid } = await createMember();
        await world.write((tx) => tx.table(identityKind).markDeleted(uid, Date.now()));
        await world.write((tx) => setIdentityActive(tx, uid, false, Date.now()));
        assert.equal(await findPerson(uid), undefined);
      });
    });

    describe("a provider with a directory", () => {
      it("keeps its issuer while it has people, or has had them", async () => {
        const path = (uid: string) => `/identityProviders/${uid}`;
        const move = (uid: string) =>
          world.owner.rest("PATCH", path(uid), {
            oidc: { issuer: "https://other.example", clientId: "client", clientSecret: "secret" },
          });
        const fixed = (uid: string) =>
          precondition(
            "ISSUER_FIXED",
            `cannot change the issuer of identity provider ${uid}: its directory has sent people, whose ids belong to the issuer: create another provider`,
          );
        const [empty, used] = [await provide(), await provide()];
        const { uid } = await send(used, { externalId: newId() });
        assert.deepEqual((await move(used)).outcome, fixed(used));
        await world.write((tx) => deleteScimUser(tx, uid));
        assert.deepEqual((await move(used)).outcome, fixed(used));
        const renamed = await world.owner.rest("PATCH", path(used), {
          oidc: { issuer, clientId: "another", clientSecret: "secret" },
        });
        assert.equal(renamed.status, 200, renamed.text);
        assert.equal((await move(empty)).status, 200);
      });

      it("alone deletes its people", async () => {
        const { row, uid, token, provider } = await createMember();
        const rest = restAs(world.url, token, "/auth/v1");
        const rule = `the directory of identity provider ${provider} manages this person: it is deleted there`;
        const managed = precondition("PERSON_MANAGED", `cannot delete identity ${uid}: ${rule}`);
        assert.deepEqual((await rest("DELETE", `/delete/${uid}`)).outcome, managed);
        // The control: a person whom it has not sent.
        await world.write((tx) => tx.table(scimUserKind).delete(row.uid));
        assert.equal((await rest("DELETE", `/delete/${uid}`)).status, 200);
      });

      it("is deleted with all that its directory has sent", async () => {
        const provider = await provide();
        // More than two units of work delete.
        await world.write(async (tx) => {
          for (let n = 0; n < 120; n++) await insertScimUser(tx, provider, { externalId: newId() });
          for (let n = 0; n < 60; n++) {
            await deleteScimUser(tx, (await insertScimUser(tx, provider, { externalId: newId() })).uid);
          }
        });
        const { externalId, uid } = await send(provider, { externalId: newId() });
        const person = await enter(buildLogin(provider, externalId));
        await deactivate(uid);
        const { status, text } = await world.owner.rest("DELETE", `/identityProviders/${provider}`);
        assert.equal(status, 200, text);
        assert.equal(await read((tx) => tx.table(scimUserKind).hasAny(provider)), false);
        assert.equal(await findPerson(person), undefined);
      });
    });
  });
}
