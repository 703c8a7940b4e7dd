// Every list of the command line on terminals of 80 and 120 columns: no line is wider, the name is the first column and the
// uid the last.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import stringWidth from "fast-string-width";
import { jobColumns, operatorRoleColumns, quotaColumns } from "../../../src/cli/host/admin.js";
import { keyColumns } from "../../../src/cli/host/keys.js";
import { memberColumns, organisationColumns } from "../../../src/cli/host/members.js";
import { columns as auditColumns } from "../../../src/cli/output/audit-log.js";
import { createListFormatter, type ListColumn } from "../../../src/cli/output/format.js";
import { createGrantColumns } from "../../../src/cli/remote/access/grants.js";
import { foundColumns, nameColumns, subjectColumns } from "../../../src/cli/remote/access/lists.js";
import { columns as reviewColumns } from "../../../src/cli/remote/access/review.js";
import { advisoryResources } from "../../../src/cli/remote/advisories/commands.js";
import { columns as methodColumns } from "../../../src/cli/remote/api/run.js";
import { columns as ownBindingColumns } from "../../../src/cli/remote/auth/bindings.js";
import { columns as pullTokenColumns } from "../../../src/cli/remote/auth/pull-token.js";
import { createSessionColumns } from "../../../src/cli/remote/auth/sessions.js";
import { eventResources } from "../../../src/cli/remote/events/commands.js";
import { columns as listenColumns } from "../../../src/cli/remote/events/listen.js";
import { addColumn } from "../../../src/cli/remote/iam/columns.js";
import { iamResources } from "../../../src/cli/remote/iam/commands.js";
import { columns as conversionColumns } from "../../../src/cli/remote/iam/presets/convert-github.js";
import { getRowsField, loadCommands, type ResourceCommand } from "../../../src/cli/remote/iam/resource-commands.js";
import { loadResource } from "../../../src/cli/remote/iam/resource-rows.js";
import { selectColumns } from "../../../src/cli/remote/iam/select-columns.js";
import { kinds } from "../../../src/cli/remote/kinds.js";
import { columns as peopleColumns } from "../../../src/cli/remote/people/members.js";
import { columns as offboardColumns } from "../../../src/cli/remote/people/offboard.js";
import { registryResources } from "../../../src/cli/remote/registry/commands.js";
import { groupColumns } from "../../../src/cli/remote/scim/commands.js";
import { PROJECT } from "../../support/project.js";

/** The columns by the command that has them. */
const lists = new Map<string, readonly ListColumn[]>();

function addResources(command: string, resources: readonly ResourceCommand[]): void {
  for (const { name, columns, actions = [] } of resources) {
    if (columns !== undefined) lists.set(`${command} ${name} list`, columns);
    for (const action of actions)
      if (action.columns !== undefined) lists.set(`${command} ${name} ${action.name}`, action.columns);
  }
}

addResources("iam", await Promise.all(iamResources.map(loadResource)));
addResources("registry", await Promise.all(registryResources.map(loadResource)));
addResources("advisories", advisoryResources);
addResources("events", await Promise.all(eventResources.map(loadResource)));
for (const [command, columns] of Object.entries({
  "scim users": kinds.find(({ kind }) => kind === "SCIM user")?.columns ?? [],
  "scim groups": groupColumns,
  "iam role-bindings list, with ends": addColumn((await loadCommands("role binding")).columns ?? [], {
    title: "ENDS",
    kind: "time",
    cell: ({ endTime }) => String(endTime),
  }),
  "iam identity-providers list, with redirect URIs": addColumn(
    (await loadCommands("identity provider")).columns ?? [],
    {
      title: "REDIRECT URI",
      cell: ({ redirectUri }) => String(redirectUri),
    },
  ),
  "iam identities convert-github": conversionColumns,
  "auth bindings list": ownBindingColumns,
  "auth sessions list": createSessionColumns(),
  "auth pull-tokens list": pullTokenColumns,
  "members list": peopleColumns,
  "access list": createGrantColumns("counted"),
  "access explain": createGrantColumns("named"),
  "access subjects": subjectColumns,
  "access search": nameColumns,
  "access review": reviewColumns,
  "members offboard": offboardColumns,
  find: foundColumns,
  "events listen": listenColumns,
  "audit list": auditColumns,
  "api list": methodColumns,
  "admin organisations list": organisationColumns,
  "admin identities list": memberColumns,
  "admin roles list": operatorRoleColumns,
  "admin keys list": keyColumns,
  "admin quotas list": quotaColumns,
  "admin jobs list": jobColumns,
}))
  lists.set(command, columns);

const ROOT = "5f2b7a10c4d3e8896b0f1a2c3d4e5f6071829304";
const GROUP = `${ROOT}/0123456789abcdef`;
const UID = `${GROUP}/fedcba9876543210`;
const TIME = "2026-11-29T01:42:17.368Z";

/** A field of a long row: names and addresses as of large companies, uids of things in groups. */
function sampleField(name: string): unknown {
  if (/^(?:id|uid|.*Uidp?|subject|scope|mapping|roleBinding|identity|actor)$/.test(name)) return UID;
  if (/time|At$/i.test(name)) return TIME;
  if (/email/i.test(name)) return "maximiliane.oberhofer-wagner@engineering.acme-industries.example";
  if (/name$/i.test(name)) return "Maximiliane Oberhofer-Wagner, platform engineering";
  if (/description|error|problem/i.test(name))
    return "who builds, tests and publishes the images of all products ".repeat(3);
  if (/issuer|sink|Uri$|source/i.test(name))
    return "https://identity.engineering.acme-industries.example/realms/production";
  if (/digest|kid/i.test(name)) return `sha256:${"0123456789abcdef".repeat(4)}`;
  if (/capabilities|tags|packages|scopes|path/i.test(name)) return Array(12).fill("role_bindings.create");
  return "something of a usual length";
}

const person = { uid: ROOT, name: sampleField("name"), email: sampleField("email"), kind: "person" };

/** A row with every field that a column reads, whatever its message is. */
function createRow(): JsonObject {
  const fixed: Readonly<Record<string, unknown>> = {
    identity: person,
    role: { uid: UID, name: "advisories.publisher" },
    group: { uid: GROUP, name: "platform-engineering", displayName: "Platform engineering", externalGroupId: UID },
    organization: { uid: ROOT, name: "acme-industries.example" },
    config: { contents: { packages: Array(12).fill("ca-certificates-bundle") } },
    sync_config: { source: sampleField("source") },
    oidc: { issuer: sampleField("issuer") },
    tagSelector: { kind: "PATTERN", tags: Array(12).fill("1.2.3") },
    overlay: { uid: UID, name: sampleField("name") },
    roles: Array(3).fill({ roleName: "owner", name: "editor", inherited: true, groupName: "acme-industries.example" }),
    owners: [person, person],
    grants: Array(3).fill({ role: { name: "editor" }, group: { name: "platform-engineering" } }),
    managedBy: UID,
    mapping: undefined,
    sources: [{ directoryGroupName: "platform-engineers", mapping: UID }],
    body: { before: { name: "a" }, after: { name: "b".repeat(200), capabilities: Array(12).fill("groups.list") } },
    type: "dev.arbor.platform.iam.role_bindings.created.v1",
    method: "chainguard.platform.iam.v2beta1.ExternalGroupRoleMappingsService/BatchDeleteExternalGroupRoleMappings",
    command: "arbor iam group-mappings batch-delete",
    durationMs: 12,
    attempts: 12,
    kind: "person",
    bindings: [1],
  };
  return new Proxy(
    {},
    {
      has: () => true,
      get: (_, name) => (String(name) in fixed ? fixed[String(name)] : sampleField(String(name))),
    },
  ) as JsonObject;
}

const row = createRow();
const print = (columns: readonly ListColumn[], width: number | undefined, rows = [row]) =>
  createListFormatter("table", "rows", columns, { colour: false, width }).page(rows).trimEnd().split("\n");

const NAMES = /^(?:(?:USER )?NAME|E-MAIL)$/;
const UIDS = /^(?:UID|ID|KID)$/;

describe("a list on a terminal", () => {
  for (const [command, columns] of lists) {
    it(`of arbor ${command} is as wide as the terminal at most`, () => {
      for (const width of [80, 120]) {
        const lines = print(columns, width);
        for (const line of lines) assert.ok(stringWidth(line) <= width, `${stringWidth(line)} of ${width}: ${line}`);
        const [header = ""] = lines;
        assert.ok(header.startsWith(columns[0]?.title ?? ""), header);
        const last = columns.at(-1);
        if (last?.kind === "uid") assert.ok(header.trimEnd().endsWith(last.title), `the uid is left out: ${header}`);
      }
    });

    it(`of arbor ${command} begins with the name and ends with the uid`, () => {
      const titles = columns.map(({ title }) => title);
      const name = titles.findIndex((title) => NAMES.test(title));
      // A log begins with the time of what happened.
      if (titles[0] !== "TIME" && name >= 0) assert.equal(name, 0, titles.join());
      const uid = titles.findIndex((title) => UIDS.test(title));
      if (uid >= 0) assert.equal(uid, titles.length - 1, titles.join());
    });

    it(`of arbor ${command} is whole in a pipe and wide`, () => {
      const [header = "", line = ""] = print(columns, undefined);
      for (const { title, cell } of columns) {
        assert.ok(header.includes(title));
        assert.ok(line.includes(cell(row)), title);
      }
    });
  }

  it("tells the uids of a group apart", () => {
    const columns = lists.get("iam groups list") ?? [];
    const rows = ["0a", "0b"].map((end) => ({ uid: `${GROUP}/fedcba98765432${end}`, name: "n".repeat(60) }));
    const [, first = "", second = ""] = print(columns, 80, rows);
    assert.match(first, /…\w+0a$/);
    assert.match(second, /…\w+0b$/);
  });

  it("leaves out the uids of something else before it cuts times to days, and never the minutes of a log", () => {
    const [header = "", line = ""] = print(lists.get("audit list") ?? [], 80);
    assert.match(header, /^TIME +TYPE +BY +CHANGE .*SUBJECT$/);
    assert.doesNotMatch(header, /ACTOR|REQUEST/);
    assert.match(line, /^2026-11-29T01:42Z {2}…\S+created\.v1 /);
  });

  it("keeps the other columns of -o wide before the uid", async () => {
    const { columns = [], methods } = await loadCommands("group");
    assert.ok(methods?.list);
    const wide = selectColumns(getRowsField(methods.list).message, columns, { output: "wide" });
    assert.ok(wide.length > columns.length);
    assert.equal(wide.at(-1)?.title, "UID");
  });

  it("is tested for every module that has columns", () => {
    const source = join(PROJECT, "src/cli");
    const found = (readdirSync(source, { recursive: true }) as string[]).filter(
      (path) =>
        path.endsWith(".ts") &&
        /createColumn\("|title: "[A-Z].*\bcell\b/.test(readFileSync(join(source, path), "utf8")),
    );
    assert.deepEqual(found.sort(), [
      "host/admin.ts",
      "host/keys.ts",
      "host/members.ts",
      "output/audit-log.ts",
      "remote/access/grants.ts",
      "remote/access/lists.ts",
      "remote/access/review.ts",
      "remote/advisories/commands.ts",
      "remote/api/run.ts",
      "remote/auth/bindings.ts",
      "remote/auth/pull-token.ts",
      "remote/auth/sessions.ts",
      "remote/events/commands.ts",
      "remote/events/listen.ts",
      "remote/iam/binding-ends.ts",
      "remote/iam/commands.ts",
      "remote/iam/presets/convert-github.ts",
      "remote/iam/run.ts",
      "remote/kinds.ts",
      "remote/people/members.ts",
      "remote/people/offboard.ts",
      "remote/registry/commands.ts",
      "remote/scim/commands.ts",
    ]);
  });
});

describe("the width", () => {
  const columns: readonly ListColumn[] = [
    { title: "NAME", cell: ({ name }) => String(name) },
    { title: "UID", kind: "uid", cell: ({ uid }) => String(uid) },
  ];

  it("is kept by later pages, which are wider", () => {
    const table = createListFormatter("table", "rows", columns, { colour: false, width: 40 });
    const text = table.page([{ name: "a", uid: "1" }]) + table.page([{ name: "b".repeat(100), uid: UID }]);
    for (const line of text.split("\n")) assert.ok(stringWidth(line) <= 40, line);
  });

  it("would be found exceeded", () => {
    // The control: the same rows in a pipe.
    assert.ok(print(columns, undefined).some((line) => stringWidth(line) > 120));
  });
});
