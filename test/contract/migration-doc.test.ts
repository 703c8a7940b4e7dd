// docs/migration.md is complete: every method, route, field and enum value of
// version 1 that version 2 has in some form stands in the section of its kind,
// and so does all of version 2. Nothing stands there that the protos lack.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  createFileRegistry,
  type DescEnum,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { http } from "#gen/google/api/annotations_pb.js";
import { PROJECT } from "../support/project.js";

const read = (path: string) => readFileSync(join(PROJECT, path));
const protos = createFileRegistry(fromBinary(FileDescriptorSetSchema, read("gen/api.binpb")));
const documented = read("docs/migration.md").toString();
const ROOT = "chainguard.platform.";

// Sections by heading: the service of version 1, those of version 2, and the messages of version 1
// at which another section takes over.
const sections: readonly { heading: string; v1: string; v2: readonly string[]; elsewhere?: readonly string[] }[] = [
  { heading: "Groups", v1: "iam.Groups", v2: ["iam.v2.GroupsService"] },
  {
    heading: "Identities",
    v1: "iam.Identities",
    v2: ["iam.v2.IdentitiesService"],
    elsewhere: ["IdentityMetadata", "UpdateIdentityMetadataRequest"],
  },
  { heading: "What a caller tells about itself", v1: "events.Identities", v2: [] },
  { heading: "Roles", v1: "iam.Roles", v2: ["iam.v2.RolesService"] },
  {
    heading: "Role bindings",
    v1: "iam.RoleBindings",
    v2: ["iam.v2.RoleBindingsService"],
    elsewhere: ["Group", "Role"],
  },
  { heading: "Identity providers", v1: "iam.IdentityProviders", v2: ["iam.v2.IdentityProvidersService"] },
  {
    heading: "External group role mappings",
    v1: "iam.ExternalGroupRoleMappings",
    v2: ["iam.v2.ExternalGroupRoleMappingsService"],
  },
  { heading: "Account associations", v1: "iam.GroupAccountAssociations", v2: ["iam.v2.AccountAssociationsService"] },
  { heading: "Group invites", v1: "iam.GroupInvites", v2: ["iam.v2.GroupInvitesService"], elsewhere: ["Role"] },
  { heading: "Terms", v1: "iam.Terms", v2: ["iam.v2.TermsService"] },
  { heading: "SCIM users", v1: "iam.ScimUsers", v2: ["iam.v2.ScimUsersService"] },
  { heading: "Repos", v1: "registry.Registry", v2: ["registry.v2.ReposService"] },
  { heading: "Tags", v1: "registry.Registry", v2: ["registry.v2.TagsService"] },
  { heading: "Images", v1: "registry.Registry", v2: ["registry.v2.ImagesService"] },
  { heading: "Advisories", v1: "vulnerabilities.v1.Advisories", v2: ["vulnerabilities.v2.AdvisoriesService"] },
  { heading: "Subscriptions", v1: "events.Subscriptions", v2: ["events.v2.SubscriptionsService"] },
  { heading: "Ping", v1: "ping.PingService", v2: ["ping.v2.PingService"] },
];

// Services of one version alone.
const unversioned = ["auth.Auth", "oidc.SecurityTokenService"];

function serviceNamed(name: string): DescService {
  const service = protos.getService(ROOT + name);
  assert.ok(service, `the protos have no service ${name}`);
  return service;
}

function sectionOf(heading: string): string {
  const [, section] = documented.split(`\n## ${heading}\n`);
  assert.ok(section, `docs/migration.md has no section "${heading}"`);
  return section.split("\n## ")[0] ?? "";
}

/** The names in code spans of a cell; `.b` after `A.a` is `A.b`. */
function namesIn(cell: string): string[] {
  let owner = "";
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => {
    if (text.startsWith(".")) return owner + text;
    owner = text.slice(0, text.lastIndexOf("."));
    return text;
  });
}

function rowsOf(section: string): { v1: string[]; v2: string[] | "same" }[] {
  const cells = section.match(/^\| .*$/gm)?.map((line) => line.split(" | ").map((cell) => cell.replace(/^\| /, "")));
  return (cells ?? [])
    .slice(1)
    .map(([v1 = "", v2 = ""]) => ({ v1: namesIn(v1), v2: v2 === "same" ? v2 : namesIn(v2) }));
}

function routeOf(method: DescMethod): string[] {
  if (!hasOption(method, http)) return [];
  const { pattern } = getOption(method, http);
  return [`${String(pattern.case).toUpperCase()} ${String(pattern.value)}`];
}

const nameOf = (method: DescMethod) => `${method.parent.name}.${method.name}`;
const localName = (desc: DescMessage | DescEnum) => desc.typeName.slice(desc.file.proto.package.length + 1);

/** Every field and enum value that requests and responses of the methods hold, within their package. */
function collectNames(methods: readonly DescMethod[], elsewhere: readonly string[] = []): Set<string> {
  const parts = new Set<string>();
  const visited = new Set<string>();
  const visit = (desc: DescMessage | DescEnum, home: string): void => {
    if (desc.file.proto.package !== home || visited.has(desc.typeName) || elsewhere.includes(localName(desc))) return;
    visited.add(desc.typeName);
    const name = localName(desc);
    if (desc.kind === "enum") {
      for (const value of desc.values) parts.add(`${name}.${value.name}`);
      return;
    }
    for (const field of desc.fields) {
      parts.add(`${name}.${field.name}`);
      const inner = field.message ?? field.enum;
      if (inner !== undefined) visit(inner, home);
    }
  };
  for (const method of methods) {
    for (const desc of [method.input, method.output]) visit(desc, method.parent.file.proto.package);
  }
  return parts;
}

/** What the section must say of methods: names, routes, and all that their messages hold. */
function listNames(methods: readonly DescMethod[], elsewhere?: readonly string[]): string[] {
  return [...methods.map(nameOf), ...methods.flatMap(routeOf), ...collectNames(methods, elsewhere)].sort();
}

describe("docs/migration.md", () => {
  for (const { heading, v1, v2, elsewhere } of sections) {
    const section = sectionOf(heading);
    const rows = rowsOf(section);
    const [old, ...next] = [serviceNamed(v1), ...v2.map(serviceNamed)] as const;
    const methods = old.methods.filter((method) => rows.some((row) => row.v1.includes(nameOf(method))));

    it(`${heading}: names the services`, () => {
      for (const { typeName } of [old, ...next]) assert.ok(section.includes(`\`${typeName}\``), typeName);
    });

    it(`${heading}: has each method, route, field and value of version 1`, () => {
      assert.ok(methods.length > 0);
      assertSameNames(
        heading,
        rows.flatMap((row) => row.v1),
        listNames(methods, elsewhere),
      );
    });

    it(`${heading}: has each method, route, field and value of version 2`, () => {
      const named = rows.flatMap((row) => (row.v2 === "same" ? row.v1 : row.v2));
      const all = next.flatMap((service) => service.methods).concat(methodsNamed(named));
      assertSameNames(heading, named, listNames(all, elsewhere));
    });

    it(`${heading}: says of nothing that it is the same when its type differs`, () => {
      const { package: home } = (next[0] ?? serviceNamed("iam.v2.IdentitiesService")).file.proto;
      for (const name of rows.flatMap((row) => (row.v2 === "same" ? row.v1 : []))) {
        assert.deepEqual(typeOf(home, name), typeOf(old.file.proto.package, name), name);
      }
    });
  }

  it("has every method of version 1 somewhere", () => {
    const lost: string[] = [];
    for (const service of protos) {
      if (service.kind !== "service" || !service.typeName.startsWith(ROOT)) continue;
      const name = service.typeName.slice(ROOT.length);
      if (unversioned.includes(name) || /\.v2(beta1)?\./.test(name)) continue;
      const texts = sections.filter(({ v1 }) => v1 === name).map(({ heading }) => sectionOf(heading));
      for (const method of service.methods) {
        const told = [`\`${nameOf(method)}\``, ...routeOf(method).map((route) => `\`${route}\``)];
        const inSection = (text: string) => told.every((word) => text.includes(word));
        if (![...texts, sectionOf("What v2 does not have")].some(inSection)) lost.push(nameOf(method));
      }
    }
    assert.deepEqual(lost, []);
  });

  it("may say that v2beta1 differs from v2 in package and path alone", () => {
    for (const { v2 } of sections) {
      for (const stable of v2.map(serviceNamed)) {
        const beta = serviceNamed(stable.typeName.slice(ROOT.length).replace(".v2.", ".v2beta1."));
        const stated = listNames(beta.methods).map((text) => text.replace("/v2beta1/", "/v2/"));
        assert.deepEqual(stated.sort(), listNames(stable.methods));
      }
    }
  });
});

// Says which names differ: the difference of two long lists is shown without most of its lines.
function assertSameNames(heading: string, documented: readonly string[], existing: readonly string[]): void {
  const lacking = existing.filter((name) => !documented.includes(name));
  const unknown = documented.filter((name) => !existing.includes(name));
  const text = `docs/migration.md, section "${heading}", has no row for ${lacking.join(", ") || "nothing"}`;
  assert.deepEqual(
    { lacking, unknown },
    { lacking: [], unknown: [] },
    `${text}; unknown: ${unknown.join(", ") || "none"}`,
  );
}

// A section may hold a method of a service that another section is about.
function methodsNamed(names: readonly string[]): DescMethod[] {
  const services = sections.flatMap(({ v2 }) => v2.map(serviceNamed));
  return services.flatMap(({ methods }) => methods.filter((method) => names.includes(nameOf(method))));
}

// What a field is of: its kind, and the scalar type or the name of its message or enum.
function typeOf(home: string, name: string): unknown {
  const dot = name.lastIndexOf(".");
  const owner = `${home}.${name.slice(0, dot)}`;
  const value = protos.getEnum(owner)?.values.find((one) => one.name === name.slice(dot + 1));
  if (value !== undefined) return value.number;
  const field = protos.getMessage(owner)?.fields.find((one) => one.name === name.slice(dot + 1));
  assert.ok(field, `${home} has no ${name}`);
  return [field.fieldKind, field.scalar, (field.message ?? field.enum)?.name];
}
