// `arbor audit get`, which exists over the API only, as the commands of `arbor iam`.
import type { Command } from "commander";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { addMethods } from "../iam/methods.js";
import type { ResourceCommand } from "../iam/resource-commands.js";

const events: ResourceCommand = {
  name: "audit",
  singular: "event of the audit log",
  methods: {},
  actions: [
    {
      name: "get",
      method: AuditService.method.getEvent,
      description: "print one event by its id, as `audit list --scope UID -o jsonl` prints it",
    },
  ],
};

/** Adds the command to `audit`. */
export function addAuditApiCommands(audit: Command): void {
  addMethods(audit, events);
}
