// Every view, for an owner and a viewer, on small and large screens, light and dark: the browser reports nothing against
// its policy, axe finds nothing, nothing is cut off, and nothing that tenants have stored runs or disturbs the page. SHOTS
// names a folder for pictures.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { ada, bob, type ConsoleWorld, call, findFaults, overflowOf, type Person, startConsoleWorld } from "./world.js";

const { SHOTS } = process.env;
const screens = [
  { width: 390, height: 844, colorScheme: "light" },
  { width: 390, height: 844, colorScheme: "dark" },
  { width: 768, height: 1024, colorScheme: "light" },
  { width: 1440, height: 900, colorScheme: "light" },
  { width: 1440, height: 900, colorScheme: "dark" },
] as const;

/** What somebody may store where text is allowed, to be run or to mislead whoever looks at it. */
const MARKUP =
  "<img src=x onerror=\"window.ran='img'\"><script>window.ran='script'</script><svg onload=\"window.ran='svg'\">";
const LINK = "javascript:window.ran='link'";
const BIDI = "safe \u202Egnp.exe\u2066 text";

interface Seeded {
  readonly org: string;
  readonly group: string;
  readonly workload: string;
}

let world: ConsoleWorld;
let seeded: Seeded;

before(async () => {
  if (SHOTS) mkdirSync(SHOTS, { recursive: true });
  world = await startConsoleWorld();
  const { group: org } = await world.organisation("acme.example", ada);
  const token = await world.harness.token(world.uidOf(ada));
  const make = async (method: string, body: object) => {
    const response = await call(world.url, token, `chainguard.platform.iam.v2.${method}`, body);
    assert.equal(response.status, 200, `${method}: ${await response.clone().text()}`);
    return (await response.json()) as { uid: string };
  };
  const description = `${MARKUP} ${LINK} ${BIDI}`;
  const { uid: group } = await make("GroupsService/CreateGroup", {
    parent: org,
    group: { name: "platform", description },
  });
  for (let n = 0; n < 60; n++) await make("GroupsService/CreateGroup", { parent: group, group: { name: `team ${n}` } });
  const claimMatch = { issuer: "https://token.actions.githubusercontent.com", subject: `repo:${LINK}` };
  const { uid: workload } = await make("IdentitiesService/CreateIdentity", {
    parent: group,
    identity: { name: "deployer", description, claimMatch },
  });
  const { uid: roleUid } = await make("RolesService/CreateRole", {
    parent: org,
    role: { name: "lister", description, capabilities: ["CAP_IAM_GROUPS_LIST", "CAP_IAM_ROLE_BINDINGS_LIST"] },
  });
  await make("RoleBindingsService/CreateRoleBinding", {
    parent: group,
    roleBinding: { identityUid: workload, roleUid },
  });
  await make("GroupInvitesService/CreateGroupInvite", {
    parent: group,
    groupInvite: { roleUid, ttl: "3600s", email: "carol@acme.example" },
  });
  // The name of a person is what their provider says.
  const mallory = { ...bob, claims: { ...bob.claims, name: `${MARKUP}${BIDI}` } };
  const guest = await world.person();
  await world.signIn(guest, mallory);
  await guest.context.close();
  await world.harness.bind(world.uidOf(bob), "viewer", group);
  seeded = { org, group, workload };
});
after(() => world?.stop());

/** The views by their names: how each is reached, and what shows that it is there. */
function viewsOf({ org, group, workload }: Seeded): Readonly<Record<string, (page: Page) => Promise<void>>> {
  const open = (path: string, text: string | RegExp) => async (page: Page) => {
    await page.goto(`/console${path}`);
    await page.getByRole("main").getByText(text).first().waitFor();
  };
  const dialog = (path: string, button: string, title: string) => async (page: Page) => {
    await page.goto(`/console${path}`);
    await page.getByRole("button", { name: button }).first().click();
    await page.getByRole("heading", { name: title }).waitFor();
    await page.getByText("Loading").waitFor({ state: "hidden" });
  };
  return {
    organisations: open("/", "acme.example"),
    members: open(`/groups/${group}`, "deployer"),
    "members of an organisation": open(`/groups/${org}`, "owner"),
    groups: open(`/groups/${group}?view=groups`, "Rows 1 to 50 of 60"),
    workloads: open(`/groups/${group}?view=identities`, "deployer"),
    invites: open(`/groups/${group}?view=invites`, "carol@acme.example"),
    settings: open(`/groups/${group}?view=settings`, "Delete the group"),
    workload: open(`/identities/${workload}`, "Signs in with"),
    person: open(`/identities/${world.uidOf(bob)}`, "Roles"),
    account: open("/account", "Sign out everywhere"),
    found: open("/find?q=team", "team 1"),
    "no such page": open("/nowhere", "There is no such page"),
    "no such group": open(`/groups/${"0".repeat(40)}`, "This group is not shown"),
    join: open("/join", "Join an organisation"),
    "new organisation": dialog("/", "New organisation", "New organisation"),
    "new group": dialog(`/groups/${group}?view=groups`, "New group", "New group"),
    grant: dialog(`/groups/${group}`, "Grant a role", "Grant a role"),
    member: dialog(`/groups/${group}`, "Details of deployer", "A member"),
    invite: dialog(`/groups/${group}?view=invites`, "Invite people", "Invite people"),
    delete: dialog(`/groups/${group}?view=settings`, "Delete…", "Delete this group?"),
    "revoke tokens": dialog(`/identities/${workload}`, "Revoke its tokens…", "Revoke all its tokens?"),
    find: async (page) => {
      await page.goto("/console/");
      await page.getByRole("main").getByText("acme.example").first().waitFor();
      await page.keyboard.press("/");
      await page.getByRole("combobox").waitFor();
      await page.keyboard.type("team");
      await page.getByRole("option").first().waitFor();
    },
  };
}

async function look({ page, complaints }: Person, name: string, file: string): Promise<void> {
  if (SHOTS) await page.screenshot({ path: join(SHOTS, `${file.replaceAll(" ", "-")}.png`), fullPage: true });
  assert.deepEqual(await findFaults(page), [], `${name}: axe`);
  assert.ok((await overflowOf(page)) <= 0, `${name} is wider than its screen`);
  assert.equal(await page.evaluate("window.ran"), undefined, `${name} ran what was stored`);
  assert.deepEqual(complaints, [], name);
}

for (const { width, height, colorScheme } of screens) {
  test(`an owner sees every view at ${width} px, ${colorScheme}`, async () => {
    const person = await world.person({ viewport: { width, height }, colorScheme, reducedMotion: "reduce" });
    await person.page.goto("/console/");
    await person.page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
    await look(person, "sign-in", `sign-in-${width}-${colorScheme}`);
    await world.signIn(person, ada);
    for (const [name, open] of Object.entries(viewsOf(seeded))) {
      await open(person.page);
      await look(person, name, `${name}-${width}-${colorScheme}`);
    }
    await person.context.close();
  });
}

describe("a viewer", () => {
  /** What only those see who may do it. */
  const ACTIONS = /^(New group|Grant a role|Invite people|Delete…|Save|Revoke.*|End…|Change when.*)$/;

  test("sees no action that a viewer may not do", async () => {
    const person = await world.person();
    await world.signIn(person, bob);
    const views = viewsOf(seeded);
    for (const name of ["members", "groups", "workloads", "invites", "workload", "account"] as const) {
      const open = views[name];
      assert.ok(open !== undefined);
      await open(person.page);
      await look(person, name, `viewer-${name}`);
      if (name === "account") continue;
      assert.equal(await person.page.getByRole("main").getByRole("button", { name: ACTIONS }).count(), 0, name);
      assert.equal(await person.page.getByRole("checkbox").count(), 0, name);
    }
    await person.page.goto(`/console/groups/${seeded.group}?view=settings`);
    await person.page.getByText("You may not delete this group.").waitFor();
    await look(person, "settings", "viewer-settings");
    await person.context.close();
  });

  test("would be found with one: the owner has them", async () => {
    const person = await world.person();
    await world.signIn(person, ada);
    await person.page.goto(`/console/groups/${seeded.group}`);
    await person.page.getByRole("checkbox").first().waitFor();
    assert.ok((await person.page.getByRole("main").getByRole("button", { name: ACTIONS }).count()) > 0);
    await person.context.close();
  });
});

test("the controls: axe, the policy and the measure of width find what is wrong", async () => {
  const person = await world.person();
  await person.page.goto("/console/");
  await person.page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await person.page.evaluate(`
    const wide = document.createElement("button");
    wide.setAttribute("style", "width: 1px");
    wide.style.width = "9000px";
    document.body.append(wide);
  `);
  assert.ok((await findFaults(person.page)).some((fault) => fault.startsWith("button-name")));
  assert.ok((await overflowOf(person.page)) > 0);
  assert.ok(
    person.complaints.some((text) => text.includes("Content Security Policy")),
    person.complaints.join(),
  );
  const sink = "document.body.innerHTML = '<p>text</p>'";
  await assert.rejects(() => person.page.evaluate(sink), /TrustedHTML/);
  await person.context.close();
});
