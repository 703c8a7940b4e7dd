// Deciding, while signing in, about roles that others gave: what is accepted and removed, and that strangers can make
// the page neither long nor slow.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { acceptBinding, acceptBindingsAt } from "../../../src/iam/people/pending-bindings.js";
import { roleBindingToProto } from "../../../src/iam/role-bindings/role-binding.js";
import { takeHeadlessSession } from "../../../src/issuer/oauth/headless.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { roleKind } from "../../../src/store/iam/roles.js";
import { countReads } from "../../support/count-reads.js";
import { bindingRow, groupRow, identityRow, roleRow } from "../../support/rows.js";
import { chooseScale } from "../../support/scale.js";
import {
  Agent,
  alice,
  claimsOf,
  codeRequest,
  inviteTo,
  type LoginKit,
  linksIn,
  newPkce,
  PROGRAM,
  postForm,
  readHiddenFields,
  type Seen,
  startLogin,
} from "./login-kit.js";
import { terminal } from "./terminal.js";

const [viewer, editor, owner] = ["viewer", "editor", "owner"].map(builtinRoleUid) as [string, string, string];

let kit: LoginKit;
let count = 0;
/** The reads of read-only transactions. */
let reads: string[] = [];

before(async () => {
  kit = await startLogin(({ store }) => ({ store: countReads(store, (name) => reads.push(name)) }));
});

beforeEach(() => {
  kit.provider.account = { ...alice, subject: `bound ${++count}` };
});

after(() => kit?.stop());

const uidOf = () => personUid(kit.provider.issuer, kit.provider.account?.subject ?? "");
const bindings = async () =>
  new Map(
    (await kit.store.read((tx) => tx.table(roleBindingKind).findByIdentity(uidOf()))).map(({ uid, pending }) => [
      uid,
      pending,
    ]),
  );
const listPending = async () =>
  (await kit.store.read((tx) => tx.access.findAllGrants(uidOf()))).flatMap(({ groupUid }) => groupUid ?? []).sort();

/** Makes the person known, with nothing bound. */
async function register(): Promise<void> {
  const agent = new Agent();
  const page = await agent.get(codeUrl());
  assert.deepEqual(selectsOn(page), [], "the control: a person without pending bindings is not asked about any");
  assert.ok((await agent.decide(page)).program?.get("code"));
}

/** An organisation that another owns, in which bindings of the person are pending; its uid and theirs. */
async function offer(name: string, roles: readonly string[] = [viewer], to = uidOf()) {
  const { group, owner } = await kit.organisation(name, false);
  const uids = roles.map(() => randomIds.newUid(group));
  await kit.store.write(async (tx) => {
    for (const [i, role] of roles.entries()) {
      await tx.table(roleBindingKind).insert(bindingRow(uids[i] ?? "", to, role, { pending: true }));
    }
  });
  return { group, owner, uids };
}

type Offer = Awaited<ReturnType<typeof offer>>;

function codeUrl(more: Readonly<Record<string, string>> = {}): string {
  return `${kit.url}/oauth?${new URLSearchParams(codeRequest(newPkce().challenge, more))}`;
}

const field = (group: string) => `bindings-${group}`;

function decide(agent: Agent, page: Seen, decisions: Readonly<Record<string, string>>, decision = "accept") {
  return agent.post(`${kit.url}/oauth/consent`, { ...readHiddenFields(page.text), ...decisions, decision });
}

function isConsent({ url, status, program }: Seen): boolean {
  return status === 200 && program === undefined && /\/oauth\/consent\?login=/.test(url);
}

const textOf = ({ text }: Seen) =>
  text
    .replace(/<style>.*<\/style>/s, "")
    .replace(/<[^>]*>/g, "")
    .replace(/\s+/g, " ");

/** The organisations that a page asks about, with what it offers for each. */
const selectsOn = ({ text }: Seen) =>
  [...text.matchAll(/<select [^>]*name="bindings-([0-9a-f]+)"[^>]*>(.*?)<\/select>/gs)].map(
    ([, group, options = ""]) => ({
      group,
      options: [...options.matchAll(/value="([a-z]+)"( selected)?/g)].map(
        ([, value, selected]) => value + (selected ?? ""),
      ),
    }),
  );

test("accepts in one organisation, removes in another, and keeps the third pending", async () => {
  await register();
  const kept = await offer("kept.example", [viewer, editor]);
  // In the order of the bindings, what is left for later follows what is removed.
  const two = [await offer("one.example", [owner]), await offer("two.example", [owner])];
  const [gone, later] = two.sort((a, b) => (a.group < b.group ? -1 : 1)) as [Offer, Offer];
  const agent = new Agent();
  const page = await agent.get(codeUrl());
  assert.ok(isConsent(page), page.text);
  const text = textOf(page);
  assert.match(
    text,
    /kept\.example \(a name that nobody has verified\) Roles (viewer, editor|editor, viewer): 2 role bindings\./,
  );
  assert.match(text, /two\.example \(a name that nobody has verified\) Role owner: 1 role binding\./);
  assert.deepEqual(
    new Map(selectsOn(page).map(({ group, options }) => [group, options.join()])),
    new Map([kept, gone, later].map(({ group }) => [group, "later selected,accept,remove"])),
  );
  assert.deepEqual(await listPending(), []);

  const decisions = { [field(kept.group)]: "accept", [field(gone.group)]: "remove", [field(later.group)]: "later" };
  const { program } = await decide(agent, page, decisions);
  assert.ok(program?.get("code"), String(program));
  const expected = [...kept.uids.map((uid) => [uid, false] as const), ...later.uids.map((uid) => [uid, true] as const)];
  assert.deepEqual(await bindings(), new Map(expected.sort()));
  assert.deepEqual(await listPending(), [kept.group, kept.group]);
  const rows = await kit.store.read(async (tx) => [
    ...(await tx.audit.listNewest(9, kept.group)),
    ...(await tx.audit.listNewest(9, gone.group)),
  ]);
  const ofPerson = rows.filter(({ actorUid }) => actorUid === uidOf());
  assert.deepEqual(
    ofPerson.map(({ type, method }) => [type, method]),
    ["dev.arbor.bindings.binding.accepted.v1", "dev.chainguard.api.iam.rolebindings.deleted.v1"].map((type) => [
      type,
      "/oauth/consent",
    ]),
  );

  const bodies = await kit.store.read((tx) => tx.audit.readBodies(ofPerson));
  const [accepted, dropped] = ofPerson.map(({ id }) => JSON.parse(bodies.get(id) ?? "{}"));
  assert.deepEqual(accepted.after.roleBindings.map(({ uid }: { uid: string }) => uid).sort(), [...kept.uids].sort());
  assert.deepEqual([dropped.before.uid, dropped.after], [gone.uids[0], undefined]);
  assert.ok(dropped.before.role.name !== "");

  // The next login asks about bindings that were left for later, and about no others.
  const again = await agent.get(codeUrl());
  assert.deepEqual(
    selectsOn(again).map(({ group }) => group),
    [later.group],
  );
});

test("a declined login changes nothing, and a login without a decision changes no binding", async () => {
  await register();
  const [one, other] = [await offer("declined.example"), await offer("other.example")];
  const before = await bindings();
  const agent = new Agent();
  const decisions = { [field(one.group)]: "accept", [field(other.group)]: "remove" };
  const declined = await decide(agent, await agent.get(codeUrl()), decisions, "decline");
  assert.equal(declined.program?.get("error"), "access_denied");
  assert.deepEqual(await bindings(), before);
  for (const nothing of [{}, { [field(one.group)]: "later" }]) {
    const { program } = await decide(agent, await agent.get(codeUrl()), nothing);
    assert.ok(program?.get("code"));
    assert.deepEqual(await bindings(), before);
  }
});

test("a login with the token in the redirect asks on its page, and one that assumes an identity does not", async () => {
  await register();
  const { group, uids } = await offer("redirected.example");
  const redirect = (more: Readonly<Record<string, string>> = {}) =>
    `${kit.url}/oauth?${new URLSearchParams({ exit: "redirect", redirect: `${PROGRAM}?token=true`, ...more })}`;
  const home = await kit.organisation("home.example");
  const identity = `${home.group}/${"e".repeat(16)}`;
  const { issuer, clientId } = kit.provider;
  const claimMatch = { issuer, subject: kit.provider.account?.subject, audience: clientId };
  await kit.store.write((tx) => tx.table(identityKind).insert(identityRow(identity, { relationship: { claimMatch } })));
  const agent = new Agent();
  const assuming = await agent.get(redirect({ identity }));
  assert.ok(isConsent(assuming));
  assert.deepEqual(selectsOn(assuming), []);
  const assumed = await decide(agent, assuming, { [field(group)]: "remove" });
  assert.equal(claimsOf(assumed.program?.get("token")).sub, identity);
  assert.deepEqual([...(await bindings())], [[uids[0], true]]);

  const page = await agent.get(redirect());
  assert.equal(selectsOn(page).length, 1);
  const { program } = await decide(agent, page, { [field(group)]: "accept" });
  assert.equal(claimsOf(program?.get("token")).sub, uidOf());
  assert.deepEqual([...(await bindings())], [[uids[0], false]]);
});

test("a terminal gets what it got, and the cap claim has what was accepted", async () => {
  await register();
  const [kept, gone] = [await offer("terminal.example"), await offer("spam.example")];
  const { key, code, open } = terminal();
  const agent = new Agent();
  const start = await agent.get(`${kit.url}/oauth?client_id=arbor-cli&headless_code=${key}`);
  const confirmed = await agent.post(`${kit.url}/oauth`, { ...readHiddenFields(start.text), user_code: code });
  const page = await agent.get(linksIn(confirmed)[0] ?? "");
  assert.ok(isConsent(page), page.text);
  const takeSession = () => kit.store.write((tx) => takeHeadlessSession(tx, key, kit.deps.clock()));
  assert.equal(await takeSession(), undefined);
  const done = await decide(agent, page, { [field(kept.group)]: "accept", [field(gone.group)]: "later" });
  assert.match(done.text, /<h1>Signed in<\/h1>/);
  const session = await takeSession();
  assert.ok(session);
  const tokenRequest = { aud: [kit.url], cap: [], scopes: [], identity: "", identityProvider: "" };
  const { token } = await kit.deps.exchanger.exchange(tokenRequest, open(session), "127.0.0.1");
  assert.deepEqual(Object.keys(claimsOf(token).cap as object), [kept.group]);
});

test("a device is approved after the page, and gets tokens", async () => {
  await register();
  const { group, uids } = await offer("device.example");
  const { body } = await postForm(`${kit.url}/oauth/device_authorization`, { client_id: "robot" });
  const agent = new Agent();
  const typed = await agent.get(String(body.verification_uri_complete));
  const chosen = await agent.post(`${kit.url}/activate`, {
    ...readHiddenFields(typed.text),
    user_code: String(body.user_code),
  });
  const page = await agent.get(linksIn(chosen)[0] ?? "");
  assert.ok(isConsent(page), page.text);
  const approval = await decide(agent, page, { [field(group)]: "accept" });
  assert.match(approval.text, /<h1>Give this device access\?<\/h1>/);
  await agent.post(`${kit.url}/activate`, { ...readHiddenFields(approval.text), decision: "approve" });
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const tokens = await postForm(`${kit.url}/oauth/token`, {
    grant_type,
    client_id: "robot",
    device_code: String(body.device_code),
  });
  assert.equal(claimsOf(tokens.body.access_token).sub, uidOf());
  assert.deepEqual([...(await bindings())], [[uids[0], false]]);
});

test("what is pending in the organisation of an invite is accepted with it", async () => {
  await register();
  const { group: inviting, owner: maker } = await kit.organisation("inviting.example");
  const offered = randomIds.newUid(inviting);
  await kit.store.write((tx) =>
    tx.table(roleBindingKind).insert(bindingRow(offered, uidOf(), editor, { pending: true })),
  );
  const { group } = await offer("elsewhere.example");
  const agent = new Agent();
  const page = await agent.get(codeUrl({ invite: await inviteTo(kit, inviting, maker) }));
  assert.match(page.text, /<h1>Accept this invite\?<\/h1>/);
  assert.deepEqual(
    selectsOn(page).map((select) => select.group),
    [group],
  );
  const { program } = await decide(agent, page, { [field(inviting)]: "remove", [field(group)]: "remove" });
  assert.ok(program?.get("code"));
  const left = await bindings();
  assert.deepEqual([left.get(offered), [...left.values()]], [false, [false, false]]);
});

test("a person who registers decides about bindings that are pending already", async () => {
  const { group, uids } = await offer("early.example", [owner]);
  const agent = new Agent();
  const page = await agent.get(codeUrl());
  assert.deepEqual(selectsOn(page)[0]?.options, ["later selected", "accept", "remove"]);
  assert.ok((await decide(agent, page, { [field(group)]: "accept" })).program?.get("code"));
  assert.deepEqual([...(await bindings())], [[uids[0], false]]);
});

test("fields that the page does not have are rejected, and the login can continue", async () => {
  await register();
  const { group, uids } = await offer("asked.example");
  const stranger = personUid(kit.provider.issuer, "a stranger");
  const theirs = await offer("theirs.example", [viewer], stranger);
  const agent = new Agent();
  const page = await agent.get(codeUrl());
  type Fields = readonly (readonly [string, string])[];
  const send = (fields: Fields) =>
    agent.post(
      `${kit.url}/oauth/consent`,
      // A list, since a field may come twice.
      [...Object.entries(readHiddenFields(page.text)), ["decision", "accept"], ...fields],
    );
  const many = Array.from({ length: 11 }, () => [field(randomIds.newUid()), "later"] as const);
  const rejected: readonly (readonly [Fields, RegExp])[] = [
    [[[field(group), "Accept"]], /must be accept, later or remove/],
    [[[field(group), ""]], /must be accept, later or remove/],
    [[[field(`${group}/${"a".repeat(16)}`), "accept"]], /the uid of an organisation/],
    [[[field(uids[0] ?? ""), "remove"]], /the uid of an organisation/],
    [[[field("x' or 1=1"), "remove"]], /the uid of an organisation/],
    [
      [
        [field(group), "accept"],
        [field(group), "remove"],
      ],
      /decided on once/,
    ],
    [many, /at most 10/],
  ];
  for (const [fields, rule] of rejected) {
    const { status, text } = await send(fields);
    assert.equal(status, 400);
    assert.match(text, rule);
  }
  assert.equal((await send([["padding", "x".repeat(17_000)]])).status, 413);
  // Of others, and of organisations where nothing waits, nothing changes.
  const forged = [field(theirs.group), "remove"] as const;
  const { program } = await send([forged, [field(randomIds.newUid()), "accept"], [field(group), "accept"]]);
  assert.ok(program?.get("code"), "the control");
  assert.deepEqual([...(await bindings())], [[uids[0], false]]);
  const left = await kit.store.read((tx) => tx.table(roleBindingKind).findByIdentity(stranger));
  assert.deepEqual(
    left.map(({ uid, pending }) => [uid, pending]),
    [[theirs.uids[0], true]],
  );
});

test("who accepts is shown by name from then on, and who only uses a role is not", async () => {
  await register();
  const [said, used] = [await offer("said.example"), await offer("used.example")];
  const agent = new Agent();
  const page = await agent.get(codeUrl());
  assert.match(textOf(page), /those who see role bindings there see your name and address/);
  assert.ok((await decide(agent, page, { [field(said.group)]: "accept" })).program?.get("code"));
  await kit.store.write((tx) => acceptBindingsAt(tx, uidOf(), used.group, "use"));
  const rows = await kit.store.read((tx) => tx.table(roleBindingKind).findHydrated([...said.uids, ...used.uids]));
  assert.deepEqual(
    rows.map(({ pending }) => pending),
    [false, false],
  );
  const named = rows.filter((row) => roleBindingToProto(row).identity?.email !== "");
  assert.deepEqual(
    named.map(({ uid }) => uid),
    said.uids,
  );
  // Saying so afterwards shows it as well.
  await kit.store.write((tx) => acceptBinding(tx, uidOf(), used.uids[0] ?? ""));
  const [after] = await kit.store.read((tx) => tx.table(roleBindingKind).findHydrated([used.uids[0] ?? ""]));
  assert.equal(after?.accepted, true);
});

test("bindings that are no longer pending when the form arrives are not changed", async () => {
  await register();
  const { group, uids } = await offer("meanwhile.example");
  const agent = new Agent();
  const page = await agent.get(codeUrl());
  await kit.store.write((tx) => tx.table(roleBindingKind).acceptOne(uids[0] ?? "", "use"));
  assert.ok((await decide(agent, page, { [field(group)]: "remove" })).program?.get("code"));
  assert.deepEqual([...(await bindings())], [[uids[0], false]]);
});

test("the only owner of an organisation is not offered to leave it, and a form that asks for it does nothing", async () => {
  await register();
  const [left, other] = [await offer("left.example", [owner]), await offer("another.example")];
  await kit.store.write(async (tx) => {
    for (const { uid } of await tx.table(roleBindingKind).findByIdentity(left.owner))
      await tx.table(roleBindingKind).delete(uid);
  });
  const agent = new Agent();
  const page = await agent.get(codeUrl());
  assert.deepEqual(selectsOn(page).find((select) => select.group === left.group)?.options, [
    "later selected",
    "accept",
  ]);
  assert.match(textOf(page), /You are its only owner/);
  const before = await bindings();
  const { program } = await decide(agent, page, { [field(other.group)]: "accept", [field(left.group)]: "remove" });
  assert.equal(program?.get("error"), "access_denied");
  assert.match(program?.get("error_description") ?? "", /must keep an owner/);
  assert.deepEqual(await bindings(), before, "nothing of the login is done");
});

test("bindings of hundreds of organisations make the page neither long nor slow", async () => {
  await register();
  reads = [];
  await register();
  assert.equal(reads.filter((name) => name === "roleBindings.findPendingRoots").length, 1);
  assert.equal(reads.filter((name) => name.startsWith("roleBindings.")).length, 1, String(reads));

  const spam = async (organisations: number, each: number, name: string) => {
    for (let i = 0; i < organisations; i++) {
      // In transactions of their own: the server, in this process, must not miss that its peers are there.
      await kit.store.write(async (tx) => {
        const group = randomIds.newUid();
        await tx.table(groupKind).insert(groupRow(group, { name }));
        for (let n = 0; n < each; n++) {
          const role = randomIds.newUid(group);
          await tx.table(roleKind).insert(roleRow(role, { groupUid: group, name: `${n} ${name}` }));
          await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(group), uidOf(), role, { pending: true }));
        }
      });
    }
    reads = [];
    const agent = new Agent();
    const page = await agent.get(codeUrl());
    return { agent, page, cost: reads.length };
  };
  const few = await spam(12, 1, "x".repeat(255));
  assert.deepEqual(
    [selectsOn(few.page).length, /[^n] 2 other organisations wait\./.test(textOf(few.page))],
    [10, true],
  );
  const many = await spam(chooseScale(288, 90), chooseScale(30, 21), "y".repeat(255));
  assert.equal(selectsOn(many.page).length, 10);
  assert.match(textOf(many.page), /More than 90 other organisations wait\. arbor auth bindings list lists them all\./);
  assert.match(textOf(many.page), / y{64}… \(.*?\) Roles (\d+ y+…(, )?){3} and others: more than 20 role bindings\./);
  assert.ok(many.page.text.length < 20_000, String(many.page.text.length));
  assert.equal(many.cost, few.cost, "as many reads as for twelve organisations with a binding each");

  // What a form can change is bounded too.
  const total = (await bindings()).size;
  const remove = Object.fromEntries(selectsOn(many.page).map(({ group = "" }) => [field(group), "remove"]));
  assert.ok((await decide(many.agent, many.page, remove)).program?.get("code"));
  const removed = total - (await bindings()).size;
  // Of each organisation with more than twenty, twenty go, as many as one login may change.
  assert.ok(removed > 100 && removed <= 200, String(removed));
});
