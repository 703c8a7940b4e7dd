// The hints of methods for tools of the Model Context Protocol (docs/stubs.md): every published method of version 2beta1 has
// them, they agree with what the method does, and version 2 has the same.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  createFileRegistry,
  type DescMethod,
  type DescService,
  fromBinary,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { mcp } from "#gen/chainguard/annotations/annotations_pb.js";
import { PROJECT } from "../support/project.js";

const protos = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(join(PROJECT, "gen/api.binpb"))));
const services = [...protos].filter(
  (one): one is DescService => one.kind === "service" && one.typeName.startsWith("chainguard.platform."),
);
const methodsOf = (version: string) =>
  services.filter(({ typeName }) => typeName.includes(`.${version}.`)).flatMap(({ methods }) => methods);
const beta = methodsOf("v2beta1");
const nameOf = ({ name, parent }: DescMethod) => `${parent.name}.${name}`;

/** The methods without hints: the published API has none of them. */
const withoutHints = ["GroupInvitesService.UpdateGroupInvite"];

/** The methods that change nothing, and whose published hints do not say so. */
const readsWithoutHint = [
  "AccountAssociationsService.CheckAccountAssociation",
  "IdentitiesService.LookupIdentity",
  "PingService.Ping",
];

/** The methods that change nothing and that are not offered as tools: their responses are about people, or they are of no use. */
const hiddenReads = [
  "GroupInvitesService.ListGroupInvites",
  "GroupsService.CheckEligibility",
  "GroupsService.LookupGroup",
  "IdentitiesService.ListIdentities",
  "IdentitiesService.LookupIdentity",
  "PingService.Ping",
  "ReposService.GetRepoReadme",
  "RoleBindingsService.ListRoleBindings",
  "ScimUsersService.ListScimUsers",
  "TermsService.ListTermsAcceptances",
];

const hinted = beta.filter((method) => hasOption(method, mcp));
const hintsOf = (method: DescMethod) => getOption(method, mcp);
const isRead = ({ idempotency }: DescMethod) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
const namesOf = (some: readonly DescMethod[]) => some.map(nameOf).sort();

describe("hints for tools", () => {
  it("are on every method of version 2beta1", () => {
    assert.ok(beta.length > 80, `${beta.length} methods`);
    assert.deepEqual(namesOf(beta.filter((method) => !hasOption(method, mcp))), withoutHints);
  });

  it("say of methods without side effects that they only read, and of no others", () => {
    for (const method of hinted) {
      const { readOnly } = hintsOf(method);
      if (!readsWithoutHint.includes(nameOf(method))) assert.equal(readOnly, isRead(method), nameOf(method));
      else assert.equal(readOnly, false, nameOf(method));
      if (/^(Get|List)/.test(method.name)) assert.equal(readOnly, true, nameOf(method));
    }
  });

  it("say of deletions that they destroy, and of nothing else", () => {
    for (const method of hinted) {
      assert.equal(hintsOf(method).destructive === true, /^(Batch)?Delete/.test(method.name), nameOf(method));
    }
  });

  it("say of creations that a repetition does more, and of updates and deletions that it does not", () => {
    for (const method of hinted) {
      const { idempotent } = hintsOf(method);
      // A tag that exists is moved to where it points already.
      if (/^(Batch)?Create/.test(method.name)) assert.equal(idempotent, method.name === "CreateTag", nameOf(method));
      else if (/^(Update(?!IdentityMetadata)|(Batch)?Delete)/.test(method.name)) assert.ok(idempotent, nameOf(method));
    }
  });

  it("keep all writes, and lists of people, from agents", () => {
    const isHidden = (method: DescMethod) => hintsOf(method).hidden;
    assert.deepEqual(namesOf(hinted.filter((method) => isRead(method) && isHidden(method))), hiddenReads);
    assert.deepEqual(namesOf(hinted.filter((method) => !isRead(method) && !isHidden(method))), []);
  });

  it("describe each method in one sentence, which is understood without the service", () => {
    const texts = hinted.map((method) => hintsOf(method).description);
    for (const [i, text] of texts.entries()) {
      assert.match(text, /^[A-Z][a-z]+s [^\n]{5,}\.$/, nameOf(hinted[i] as DescMethod));
      assert.ok(text.length <= 150, text);
      assert.doesNotMatch(text, /\. [A-Z]/, text);
    }
    assert.equal(new Set(texts).size, texts.length, "no two methods have the same");
  });

  it("are the same in version 2", () => {
    const stable = new Map(methodsOf("v2").map((method) => [`${method.parent.typeName}.${method.name}`, method]));
    for (const method of beta) {
      const twin = stable.get(`${method.parent.typeName.replace(".v2beta1.", ".v2.")}.${method.name}`);
      assert.ok(twin, nameOf(method));
      assert.equal(hasOption(twin, mcp), hasOption(method, mcp), nameOf(method));
      assert.deepEqual(getOption(twin, mcp), getOption(method, mcp), nameOf(method));
    }
  });
});
