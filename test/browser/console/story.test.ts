// What an owner does in the first week, and what the people whom they invite see: two people, each with a browser, a real
// login provider, and the console as it is served.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ada, bob, type ConsoleWorld, openPart, type Person, startConsoleWorld } from "./world.js";

let world: ConsoleWorld;
let owner: Person;
let guest: Person;

before(async () => {
  world = await startConsoleWorld();
  await world.organisation("acme.example", ada);
  owner = await world.person();
  guest = await world.person();
});
after(() => world?.stop());

describe("an owner and a guest", () => {
  let link = "";
  let groupPath = "";

  test("the owner signs in, and sees the organisation", async () => {
    await world.signIn(owner, ada);
    await owner.page.getByRole("main").getByRole("link", { name: "acme.example" }).click();
    await owner.page.getByRole("heading", { name: "acme.example" }).waitFor();
    await owner.page.getByRole("link", { name: "ada@acme.example" }).waitFor();
  });

  test("makes a group", async () => {
    const { page } = owner;
    await openPart(page, "Groups");
    await page.getByRole("button", { name: "New group" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Not allowed!");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText(/^Only lower-case letters/).waitFor();
    await page.getByLabel("Name", { exact: true }).fill("platform");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "platform" }).waitFor();
    groupPath = new URL(page.url()).pathname;
  });

  test("invites a person", async () => {
    const { page } = owner;
    await openPart(page, "Invites");
    await page.getByRole("button", { name: "Invite people" }).click();
    await page.getByRole("radio", { name: /^viewer / }).check();
    await page.getByLabel("E-mail address").fill("bob@acme.example");
    await page.getByRole("button", { name: "Make the invite" }).click();
    link = await page.getByLabel("Link", { exact: true }).inputValue();
    assert.ok(link.startsWith(`${world.url}/console/join#`), link);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("cell", { name: "bob@acme.example", exact: true }).waitFor();
  });

  test("the guest accepts, and sees the group", async () => {
    const { page } = guest;
    world.provider.account = bob;
    await page.goto(link);
    await page.getByRole("button", { name: "Sign in and look at the invite" }).click();
    await page.getByText("platform").first().waitFor();
    await page.getByRole("button", { name: /accept/i }).click();
    await page.getByRole("link", { name: "Your account" }).waitFor();
    await page.goto(groupPath);
    await page.getByRole("heading", { name: "platform" }).waitFor();
  });

  test("is offered nothing that a viewer may not do, and is told who can grant it", async () => {
    const { page } = guest;
    await page.getByText("You may not grant roles here.").waitFor();
    // The guest does not see who holds roles in the organisation.
    await page.getByText("Ask an owner of the organisation, who can grant it to you.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Grant a role" }).count(), 0);
    assert.equal(await page.getByRole("checkbox").count(), 0);
    await openPart(page, "Groups");
    await page.getByText("You may not make groups here.").waitFor();
    assert.equal(await page.getByRole("button", { name: "New group" }).count(), 0);
    await openPart(page, "Settings");
    await page.getByText("You may not delete this group.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Delete…" }).count(), 0);
  });

  test("is refused by the service as well", async () => {
    const answer = await createGroupIn(guest, groupPath);
    assert.equal(answer, 403);
  });

  test("the owner grants a role that ends", async () => {
    const { page } = owner;
    await openPart(page, "Members");
    await page.getByRole("button", { name: "Grant a role" }).click();
    await page.getByLabel("Who").fill("bob@acme");
    await page.getByRole("option", { name: /bob@acme\.example/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("list", { name: "Chosen" }).getByText("Bob").waitFor();
    await page.getByLabel("Search").fill("groups.create");
    await page.getByRole("radio", { name: /^editor / }).waitFor({ state: "hidden" });
    await page.getByRole("radio", { name: /^owner / }).check();
    await page.getByLabel("Ends").selectOption("in 8 hours");
    await page.getByRole("button", { name: "Grant", exact: true }).click();
    await page.getByRole("row", { name: /bob@acme\.example.*owner.*in 8 hours/ }).waitFor();
  });

  test("the guest makes a group", async () => {
    const { page } = guest;
    await page.goto(`${groupPath}?view=groups`);
    await page.getByRole("button", { name: "New group" }).click();
    await page.getByLabel("Name", { exact: true }).fill("by bob");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "by bob" }).waitFor();
  });

  test("the owner sees who has granted it, and revokes all that the guest has", async () => {
    const { page } = owner;
    await page.goto(groupPath);
    const row = page.getByRole("row", { name: /bob@acme\.example.*owner/ });
    await row.getByRole("button", { name: "Details of bob@acme.example" }).click();
    await page.getByRole("definition").filter({ hasText: "Ada Lovelace," }).waitFor();
    await page.keyboard.press("Escape");
    for (const box of await page.getByRole("checkbox", { name: "Choose bob@acme.example" }).all()) await box.check();
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.getByRole("button", { name: "Revoke", exact: true }).click();
    await page.getByText("2 roles were revoked.").waitFor();
    await page.getByText("Nobody has a role in this group alone").waitFor();
  });

  test("the guest is refused from then on, and told what to do", async () => {
    const { page } = guest;
    assert.equal(await createGroupIn(guest, groupPath), 403);
    await page.goto(groupPath);
    await page.getByRole("heading", { name: "This group is not shown" }).waitFor();
    await page.goto("/console/");
    await page.getByText("You are in no organisation yet").waitFor();
  });

  test("the last owner cannot be revoked, and is told why", async () => {
    const { page } = owner;
    await page.goto("/console/");
    await page.getByRole("main").getByRole("link", { name: "acme.example" }).click();
    await page.getByRole("checkbox", { name: "Choose ada@acme.example" }).check();
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.getByRole("button", { name: "Revoke", exact: true }).click();
    await page.getByRole("alert").filter({ hasText: /owner/ }).waitFor();
  });

  test("no page complained", () => {
    assert.deepEqual([...owner.complaints, ...guest.complaints], []);
  });
});

/** Calls the API with the token of a person's session; returns the status. */
async function createGroupIn({ page }: Person, path: string): Promise<number> {
  const parent = path.replace("/console/groups/", "");
  const [request] = await Promise.all([
    page.waitForRequest((one) => one.headers().authorization !== undefined),
    page.reload(),
  ]);
  const response = await fetch(`${world.url}/iam/v2/groups/${parent}`, {
    method: "POST",
    headers: { authorization: request.headers().authorization ?? "", "content-type": "application/json" },
    body: JSON.stringify({ name: "refused" }),
  });
  return response.status;
}
