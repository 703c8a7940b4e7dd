// All rows of the table.
import { accountAssociations, invites } from "./accounts-and-invites.js";
import { errors } from "./errors.js";
import { filters } from "./filters.js";
import { groups } from "./groups.js";
import { identities } from "./identities.js";
import { identityProviders } from "./identity-providers.js";
import { lists } from "./lists.js";
import { masks } from "./masks.js";
import { methods } from "./methods.js";
import { overlays } from "./overlays.js";
import { protocols } from "./protocols.js";
import { registry } from "./registry.js";
import { resources } from "./resources.js";
import { roleBindings } from "./role-bindings.js";
import type { Rule } from "./rule.js";
import { services } from "./services.js";
import { tokens } from "./tokens.js";
import { versions } from "./versions.js";

/** The rows, in the order of the page. */
export const rules: readonly Rule[] = [
  ...services,
  ...methods,
  ...masks,
  ...errors,
  ...lists,
  ...filters,
  ...resources,
  ...groups,
  ...identities,
  ...roleBindings,
  ...identityProviders,
  ...accountAssociations,
  ...invites,
  ...registry,
  ...overlays,
  ...tokens,
  ...protocols,
  ...versions,
];
