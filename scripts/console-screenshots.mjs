// Takes the pictures of docs/console.md: a service with a sample organisation, seen in Chromium. `npm run docs:screenshots`
// runs it after a change of what the pictures show.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { register } from "tsx/esm/api";

register();
const { groupKind } = await import("../src/store/iam/groups.ts");
const { identityKind } = await import("../src/store/iam/identities.ts");
const { roleBindingKind } = await import("../src/store/iam/role-bindings.ts");
const { roleKind } = await import("../src/store/iam/roles.ts");
const { builtinRoleUid, randomIds } = await import("../src/kernel/ids.ts");
const { bindingRow, childUid, groupRow, identityRow, roleRow } = await import("../test/support/rows.ts");
const { startConsoleWorld } = await import("../test/browser/console/world.ts");

const FOLDER = "docs/images/console";
const MAX_BYTES = 100_000;
const QUALITY = 85;
const WIDE = { width: 1200, height: 750 };
const NARROW = { width: 390, height: 750 };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const mia = account("mia", "Mia Keller");
const jonas = account("jonas", "Jonas Berg");
const others = [
  account("priya", "Priya Nair"),
  account("tomas", "Tomás Silva"),
  account("hana", "Hana Sato"),
  account("noah", "Noah Lindqvist"),
];

const world = await startConsoleWorld();
try {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  await takePictures(await storeSample());
} finally {
  await world.stop();
}

function account(subject, name) {
  return { subject, claims: { email: `${subject}@acme.example`, email_verified: true, name } };
}

async function storeSample() {
  const { group: org } = await world.organisation("acme.example", mia);
  const { group: lab } = await world.organisation("acme-labs.example", mia);
  const nowMs = Date.now();
  const at = (days) => ({ createTimeMs: nowMs - days * DAY_MS, updateTimeMs: nowMs - days * DAY_MS });
  const uids = {};
  await world.harness.app.installation.store.write(async (tx) => {
    const addGroup = async (parent, name, description, days) => {
      const uid = randomIds.newUid(parent);
      await tx.table(groupKind).insert(groupRow(uid, { name, description, ...at(days) }));
      return uid;
    };
    // Members are listed in the order of the uids of their bindings.
    let bindings = 0;
    const bind = async (groupUid, identityUid, role, days, endTimeMs = null) => {
      const values = { accepted: !identityUid.includes("/"), endTimeMs, ...at(days) };
      const uid = childUid(groupUid, ++bindings);
      await tx.table(roleBindingKind).insert(bindingRow(uid, identityUid, builtinRoleUid(role), values));
    };

    await tx.table(groupKind).update(org, { description: "All of Acme", verified: true }, nowMs);
    await tx.table(groupKind).update(lab, { description: "What may become a product" }, nowMs);
    const platform = await addGroup(org, "platform", "Clusters, registries and CI", 238);
    const data = await addGroup(org, "data", "Warehouse and reports", 230);
    const payments = await addGroup(org, "payments", "Checkout, invoices and payouts", 225);
    await addGroup(org, "security", "Reviews and incident response", 120);
    await addGroup(org, "web", "Shop and help centre", 90);
    for (const parent of [payments, platform, data]) {
      await addGroup(parent, "production", "What customers use", 200);
      await addGroup(parent, "staging", "What is tried before a release", 199);
    }
    const roles = ["editor", "viewer", "editor", "viewer"];
    for (const [i, person] of [jonas, ...others].entries()) {
      const { email, name } = person.claims;
      const { issuer } = world.provider;
      const uid = world.uidOf(person);
      const row = identityRow(uid, { issuer, subject: person.subject, email, name, ...at(180) });
      await tx.table(identityKind).insert(row);
      if (person === jonas) await bind(org, uid, "viewer", 170);
      else await bind(payments, uid, roles[i - 1], 170 - 9 * i, i === 2 ? nowMs + 8 * HOUR_MS : undefined);
    }
    const issuer = "https://token.actions.githubusercontent.com";
    for (const [i, name] of ["deploy checkout", "deploy invoices", "nightly report"].entries()) {
      const uid = randomIds.newUid(payments);
      const subject = `repo:acme/${name.replace(" ", "-")}:ref:refs/heads/main`;
      const values = { name, relation: 1, relationship: { claimMatch: { issuer, subject } }, ...at(60 + i) };
      await tx.table(identityKind).insert(identityRow(uid, { ...values, lastSeenTimeMs: nowMs - (i + 1) * HOUR_MS }));
      await bind(payments, uid, name.startsWith("deploy") ? "registry.push" : "viewer", 59 + i);
    }
    const role = roleRow(randomIds.newUid(org), { name: "deployer", description: "Releases what was reviewed" });
    await tx.table(roleKind).insert({ ...role, groupUid: org });
    Object.assign(uids, { org, payments });
  });
  return uids;
}

async function takePictures({ org, payments }) {
  const group = `/console/groups/${payments}`;
  const { page } = await signIn(mia, { viewport: WIDE });
  await page.getByRole("treeitem", { name: "acme.example" }).getByTitle("Open").click();
  await page.getByRole("tree").getByText("payments").waitFor();
  await take(page, "organisations");

  await page.goto(group);
  await page.getByRole("link", { name: "priya@acme.example" }).waitFor();
  await take(page, "members");

  await page.getByRole("button", { name: "Grant a role" }).click();
  await page.getByLabel("Who").fill("jonas");
  await page.getByRole("option", { name: /^Jonas Berg/ }).click();
  await page.getByLabel("Search").fill("repo.create");
  await page.getByRole("radio", { name: /^editor / }).check();
  await page.getByLabel("Ends").selectOption("in 8 hours");
  await page.getByLabel("Who").scrollIntoViewIfNeeded();
  await take(page, "grant");

  await page.goto("/console/");
  await page.getByRole("main").getByRole("link", { name: "acme.example" }).waitFor();
  await page.keyboard.press("/");
  await page.getByRole("combobox").fill("deploy");
  await page.getByRole("option").nth(2).waitFor();
  await take(page, "find");

  await page.goto(`${group}?view=invites`);
  await page.getByRole("button", { name: "Invite people" }).first().click();
  await page.getByLabel("Search").fill("viewer");
  await page.getByRole("radio", { name: /^viewer / }).check();
  await page.getByLabel("E-mail address").fill("lena@acme.example");
  await take(page, "invite");

  await page.goto("/console/account");
  await page.getByText("Sign out everywhere").waitFor();
  await take(page, "account");

  const viewer = await signIn(jonas, { viewport: WIDE });
  await viewer.page.goto(group);
  await viewer.page.getByRole("link", { name: "priya@acme.example" }).waitFor();
  await viewer.page.getByText("You may not grant roles here.").waitFor();
  await take(viewer.page, "viewer");

  const phone = await signIn(mia, { viewport: NARROW, colorScheme: "dark" });
  await phone.page.goto(`/console/groups/${org}?view=groups`);
  await phone.page.getByRole("main").getByRole("link", { name: "payments" }).waitFor();
  await take(phone.page, "narrow-dark");
}

async function signIn(who, screen) {
  const person = await world.person({ ...screen, locale: "en-GB", timezoneId: "Europe/Berlin" });
  await world.signIn(person, who);
  return person;
}

async function take(page, name) {
  await page.waitForLoadState("networkidle");
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  await devtools.detach();
  const bytes = Buffer.from(data, "base64");
  assert.ok(bytes.length <= MAX_BYTES, `${name}: ${bytes.length} bytes`);
  writeFileSync(join(FOLDER, `${name}.webp`), bytes);
  console.log(`${name}: ${bytes.length} bytes`);
}
