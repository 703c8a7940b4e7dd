// `arbor iam`.
import type { Command } from "commander";
import { addLazyCommand } from "../../lazy-command.js";
import { kinds } from "../kinds.js";
import { createColumn } from "./columns.js";
import { addResources, kindRow, type ResourceRow } from "./resource-rows.js";

const more: Readonly<Record<string, ResourceRow["loadMore"]>> = {
  identity: async () => (await import("./identity-commands.js")).addIdentityCommands,
  "role binding": async () => (await import("./set-binding-end-command.js")).addSetEnd,
};

/** What people type for some of them. */
const shortNames: Readonly<Record<string, string>> = {
  "role binding": "bindings",
  "identity provider": "providers",
  "group invite": "invites",
  "external group role mapping": "mappings",
};

const terms: ResourceRow = {
  name: "terms",
  singular: "acceptance of terms",
  load: async () => {
    const { method } = (await import("#gen/chainguard/platform/iam/v2beta1/terms_pb.js")).TermsService;
    return {
      methods: { list: method.listTermsAcceptances, create: method.acceptTerms },
      createAlias: "accept",
      columns: [
        createColumn("DOCUMENT", "docId"),
        createColumn("ACCEPTED", "createTime"),
        createColumn("ACCEPTED BY", "acceptedBy", "uid"),
        createColumn("ORGANISATION", "orgUid"),
      ],
    };
  },
};

/** The resources in the order of the help. */
export const iamResources: readonly ResourceRow[] = [
  ...kinds
    .filter(({ command }) => command.startsWith("iam "))
    .map(({ kind }) => {
      const loadMore = more[kind];
      const row = kindRow(kind, loadMore && { loadMore });
      const about = kind === "identity" && "manage identities: workloads such as CI jobs, and people";
      return {
        ...row,
        ...(about && { about }),
        ...(shortNames[kind] !== undefined && { aliases: [shortNames[kind]] }),
      };
    }),
  terms,
];

/** Fills `iam`. */
export function addIamCommands(iam: Command): void {
  addResources(iam, iamResources);
  addLazyCommand(iam, {
    name: "guard",
    description: "manage which issuers the identities of an organisation may trust",
    load: async () => (await import("./trust-commands.js")).addGuard,
  });
}
