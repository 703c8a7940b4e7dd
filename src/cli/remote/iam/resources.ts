// The resources of `arbor iam`.
import { TermsService } from "#gen/chainguard/platform/iam/v2beta1/terms_pb.js";
import { kinds } from "../kinds.js";
import { createColumn } from "./columns.js";
import { loadCommands, type ResourceCommand } from "./resource-commands.js";

const terms: ResourceCommand = {
  name: "terms",
  singular: "acceptance of terms",
  methods: { list: TermsService.method.listTermsAcceptances, create: TermsService.method.acceptTerms },
  createAlias: "accept",
  columns: [
    createColumn("DOCUMENT", "docId"),
    createColumn("ACCEPTED", "createTime"),
    createColumn("ACCEPTED BY", "acceptedBy", "uid"),
    createColumn("ORGANISATION", "orgUid"),
  ],
};

/** The resources in the order of the help. */
export const iamResources: readonly ResourceCommand[] = [
  ...(await Promise.all(
    kinds.filter(({ command }) => command.startsWith("iam ")).map(({ kind }) => loadCommands(kind)),
  )),
  terms,
];
