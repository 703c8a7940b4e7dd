// `arbor can`, `arbor find` and `arbor access`: who may do what, where, and why.
import type { DescMethodUnary } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { addCommonFlags, addFilterFlag, createColumnsOption } from "../flags.js";
import { createFieldFlags, FieldFlag } from "../iam/field-flags.js";
import { listFilters } from "../iam/filters.js";
import { describeOption } from "../iam/methods.js";
import { setMethods } from "../methods.js";

const { check, explain, find, listAccess, listSubjects, searchNames } = AccessService.method;

const IDENTITY = "uid or name of the identity, or `me` for the caller";
const METHOD =
  "a method, such as GroupsService/UpdateGroup, or capabilities with commas between, such as groups.update";

/** Fills `can`. */
export function addCan(can: Command): void {
  setMethods(can, check).argument("<identity>", IDENTITY).argument("<method>", METHOD);
  addCommonFlags(addPlaceFlags(can)).action(async (identity, method, flags) =>
    (await import("./decisions.js")).printDecision(identity, method, flags),
  );
}

/** Fills `find`. */
export function addFind(finding: Command): void {
  addListFlags(finding, find, ["query"])
    .argument("<text>", "a uid, a path, words of a name, an e-mail address, a digest or the id of a request")
    .action(async (text, flags) => (await import("./lists.js")).findByText(text, fieldFlagsOf(finding), flags));
}

/** Fills `access`. */
export function addAccess(access: Command): void {
  access.configureHelp({ optionDescription: describeOption });
  const list = addListFlags(access.command("list"), listAccess, ["identity"])
    .description(
      "list what an identity may do, and where; with --group only by roles that are bound in the group and below it, not above",
    )
    .argument("[identity]", `${IDENTITY}; the caller unless given`);
  list.action(async (identity, flags) => (await import("./lists.js")).listGrants(identity, fieldFlagsOf(list), flags));

  const explaining = setMethods(access.command("explain"), explain)
    .description("print whether an identity may do something, and what grants it")
    .argument("<identity>", IDENTITY)
    .argument("<method>", METHOD)
    .addOption(createColumnsOption());
  addCommonFlags(addPlaceFlags(explaining)).action(async (identity, method, flags) =>
    (await import("./decisions.js")).printExplanation(identity, method, flags),
  );

  const subjects = addPlaceFlags(access.command("subjects"))
    .description("list who may do something, and the rules that would admit more people")
    .argument("<method>", METHOD);
  addListFlags(subjects, listSubjects, ["actions", "resource"]).action(async (method, flags) =>
    (await import("./lists.js")).listWhoCan(method, fieldFlagsOf(subjects), flags),
  );

  const review = addCommonFlags(access.command("review").addOption(createColumnsOption()))
    .description(
      "list the role bindings of a group and its descendants by the last use of the identity, never used ones first",
    )
    .requiredOption("--group <uid-or-name>", "the group, such as acme.example")
    .option("--progress", "show progress on standard error, even if that is not a terminal")
    .action(async (flags) => (await import("./review.js")).printReview(flags));
  const iam = "chainguard.platform.iam.v2beta1";
  setMethods(
    review,
    ...[`${iam}.GroupsService/GetGroup`, `${iam}.GroupsService/ListGroups`],
    ...[`${iam}.RoleBindingsService/ListRoleBindings`, `${iam}.IdentitiesService/ListIdentities`],
    ...[`${iam}.IdentitiesService/GetIdentity`, "chainguard.platform.auth.Auth/Validate"],
  );

  const search = addListFlags(access.command("search"), searchNames, ["prefix"])
    .description("find groups, identities and repos by the beginning of their names")
    .argument("<prefix>", "how the names begin");
  search.action(async (prefix, flags) =>
    (await import("./lists.js")).searchByName(prefix, fieldFlagsOf(search), flags),
  );
}

/** Adds the flags for where something is to be done. */
function addPlaceFlags(command: Command): Command {
  return command
    .option("--group <uid-or-name>", "the group to act in, such as acme.example/platform")
    .option("--resource <uid-or-name>", "instead of --group: the resource to act on");
}

/** Adds the flags of a list: those of the fields of its request, and those of all lists. */
function addListFlags(command: Command, method: DescMethodUnary, args: readonly string[]): Command {
  const flags = createFieldFlags(method.input, {
    args: method.input.fields.filter((field) => args.includes(field.name)),
  });
  for (const flag of flags) command.addOption(flag);
  const filters = listFilters(flags).map((flag) => flag.name());
  if (filters.length > 0) addFilterFlag(command, filters);
  return addCommonFlags(
    setMethods(command, method)
      .addOption(createColumnsOption())
      .option("--page-all", "print all pages from here on as they arrive")
      .option("--progress", "show progress on standard error, even if that is not a terminal"),
  );
}

function fieldFlagsOf(command: Command): FieldFlag[] {
  return command.options.filter((option) => option instanceof FieldFlag);
}
