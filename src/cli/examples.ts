// The examples at the end of the help of each command, which are loaded for the help alone.
import type { Command } from "commander";
import { pathOf } from "./lazy-command.js";

/** What somebody wants, in their words, and the command line that does it. */
export type Example = readonly [wish: string, line: string];

const login: readonly Example[] = [
  ["Log in with a browser on this machine", "arbor login"],
  ["Log in through your organisation's login provider", "arbor login --identity-provider acme.example"],
  ["Log in where there is no browser", "arbor login --headless"],
  [
    "Log in as a workload, with the OIDC token of its platform",
    'arbor login --identity "$IDENTITY_UID" --identity-token /var/run/token',
  ],
];
const logout: readonly Example[] = [["End the login on this machine", "arbor logout"]];
const status: readonly Example[] = [
  ["See who is logged in, and until when", "arbor status"],
  ["The same for a program", "arbor status -o json"],
];

/** The examples by the path of the command, such as `iam groups list`. */
export const examples: Readonly<Record<string, readonly Example[]>> = {
  login,
  logout,
  status,
  whoami: [["See who you are to the service, and the roles that you have", "arbor whoami"]],
  docs: [
    ["Open the documentation in a browser", "arbor docs"],
    ["Print the address of the page about the registry", "arbor docs registry --no-browser"],
  ],
  demo: [["Try Arbor on this machine without any setup", "arbor demo"]],
  version: [["See whether this program and the service have the same version", "arbor version"]],
  help: [["Read what a command takes", "arbor help iam groups create"]],
  completion: [["Complete commands and names in this shell", "source <(arbor completion bash)"]],

  "members list": [["See who can do something in a group, and as what", "arbor members list acme.example/platform"]],
  "members offboard": [
    [
      "See the access of a person who leaves, and what would remain",
      "arbor members offboard bob@acme.example --dry-run",
    ],
    ["Remove the access", "arbor members offboard bob@acme.example"],
    ["Remove the access in one group", "arbor members offboard bob@acme.example --group acme.example/platform"],
  ],
  can: [
    ["See whether you may delete a group", "arbor can me groups.delete --group acme.example/platform"],
    ["See whether somebody may push images", "arbor can ada@acme.example tag.create --group acme.example/platform"],
  ],
  "access list": [
    ["See everything that somebody may do, and where", "arbor access list ada@acme.example"],
    [
      "See what a workload may do in one group",
      "arbor access list acme.example/platform/ci --group acme.example/platform",
    ],
  ],
  "access explain": [
    [
      "See why somebody may, or may not, change a group",
      "arbor access explain ada@acme.example groups.update --group acme.example/platform",
    ],
  ],
  "access subjects": [
    ["See who can read the repos of a group", "arbor access subjects repo.list --group acme.example/platform"],
  ],
  "access review": [
    ["See who has roles but does not use them", "arbor access review --group acme.example"],
    ["The same as a CSV file", "arbor access review --group acme.example -o csv > review.csv"],
  ],
  "access search": [["Find the groups, workloads and repos whose names begin with a text", "arbor access search pla"]],
  find: [
    ["Find out what a uid names", "arbor find 6ce2ba9218dd3843081c5ce575485292c39b25ed/f7ac153e2cad75ee"],
    ["Find a person by address", "arbor find ada@acme.example"],
  ],

  "iam groups list": [
    ["List your organisations", "arbor iam groups list --in-root"],
    [
      "List the groups of an organisation, with those below them",
      "arbor iam groups list --descendants-of acme.example",
    ],
  ],
  "iam groups get": [["Show one group", "arbor iam groups get acme.example/platform"]],
  "iam groups create": [
    ["Create a group for a team", "arbor iam groups create --parent acme.example --name platform"],
    [
      "The same in a script that may run again",
      "arbor iam groups create --parent acme.example --name platform --if-absent",
    ],
    ["Create an organisation", "arbor iam groups create --name acme.example"],
  ],
  "iam groups update": [["Rename a group", "arbor iam groups update acme.example/platform --name infrastructure"]],
  "iam groups delete": [
    ["Delete an empty group", "arbor iam groups delete acme.example/platform"],
    ["See what is in a group", "arbor iam groups delete acme.example/platform --recursive --dry-run"],
    ["Delete all of it, after a question", "arbor iam groups delete acme.example/platform --recursive"],
  ],
  "iam groups lookup": [["Find the organisation that your address belongs to", "arbor iam groups lookup"]],
  "iam groups request-access": [
    ["Ask the owners of an organisation to let you in", 'arbor iam groups request-access "$GROUP_UID"'],
  ],
  "iam groups check-eligibility": [
    ["See whether there may be an organisation for you", "arbor iam groups check-eligibility"],
  ],

  "iam identities list": [
    ["List the workloads of a group", "arbor iam identities list --children-of acme.example/platform"],
    ["List those of an organisation", "arbor iam identities list --descendants-of acme.example --page-all"],
  ],
  "iam identities get": [
    ["Show a workload and whose tokens it accepts", "arbor iam identities get acme.example/platform/ci"],
  ],
  "iam identities create": [
    [
      "Let GitHub Actions of a repository in, only from the main branch",
      "arbor iam identities create --parent acme.example/platform --name ci --github-repo acme/app --ref refs/heads/main",
    ],
    [
      "Let a workload in by the issuer and the subject of its token",
      "arbor iam identities create --parent acme.example/platform --name ci --issuer https://ci.example.com --subject build",
    ],
  ],
  "iam identities update": [
    ["Rename a workload", "arbor iam identities update acme.example/platform/ci --name builds"],
  ],
  "iam identities delete": [["Delete a workload", "arbor iam identities delete acme.example/platform/ci"]],
  "iam identities lookup": [
    ["Find the workload that a token would be", "arbor iam identities lookup https://ci.example.com build"],
  ],
  "iam identities update-metadata": [
    ["Store what you say about yourself", "arbor iam identities update-metadata -f about-me.yaml"],
  ],
  "iam identities test-claims": [
    [
      "See whether a token would be accepted, and why not",
      "arbor iam identities test-claims acme.example/platform/ci --identity-token token.jwt",
    ],
  ],
  "iam identities revoke-tokens": [
    ["Revoke every token of a workload", "arbor iam identities revoke-tokens acme.example/platform/ci"],
    ["Revoke one leaked token", "arbor iam identities revoke-tokens --leaked-token token.jwt"],
  ],
  "iam identities convert-github": [
    [
      "See which workloads know GitHub repositories by name alone",
      "arbor iam identities convert-github --group acme.example --dry-run",
    ],
  ],
  "iam identities conditions get": [
    ["See what else tokens must satisfy", "arbor iam identities conditions get acme.example/platform/ci"],
  ],
  "iam identities conditions set": [
    [
      "Require more of tokens, with a list of conditions",
      "arbor iam identities conditions set acme.example/platform/ci --file conditions.yaml",
    ],
  ],
  "iam identities conditions clear": [
    ["Remove the additional conditions", "arbor iam identities conditions clear acme.example/platform/ci"],
  ],

  "iam roles list": [["List the roles that you can grant", "arbor iam roles list"]],
  "iam roles get": [["See what a role allows", "arbor iam roles get editor"]],
  "iam roles create": [
    [
      "Create a role that reads groups and repos",
      "arbor iam roles create --parent acme.example --name reader --capability groups.list --capability repo.list",
    ],
  ],
  "iam roles update": [
    ["Change what a role allows", "arbor iam roles update acme.example/reader --capability groups.list"],
  ],
  "iam roles delete": [["Delete a role", "arbor iam roles delete acme.example/reader"]],

  "iam role-bindings list": [
    ["See the roles that are granted in a group", "arbor iam role-bindings list --group acme.example/platform"],
  ],
  "iam role-bindings get": [["Show one binding", 'arbor iam role-bindings get "$BINDING"']],
  "iam role-bindings create": [
    [
      "Give somebody a role in a group",
      "arbor iam role-bindings create --parent acme.example/platform --identity ada@acme.example --role editor",
    ],
    [
      "The same, for eight hours",
      "arbor iam role-bindings create --parent acme.example/platform --identity ada@acme.example --role editor --expires 8h",
    ],
  ],
  "iam role-bindings update": [
    ["Replace the role of a binding", 'arbor iam role-bindings update "$BINDING" --role viewer'],
  ],
  "iam role-bindings delete": [["Remove a role from an identity", 'arbor iam role-bindings delete "$BINDING"']],
  "iam role-bindings batch-create": [
    ["Grant several roles at once", "arbor iam role-bindings batch-create acme.example/platform -f bindings.yaml"],
  ],
  "iam role-bindings set-end": [
    ["Let a binding end tomorrow", 'arbor iam role-bindings set-end "$BINDING" --expires 24h'],
    ["Let it never end", 'arbor iam role-bindings set-end "$BINDING" --never'],
  ],

  "iam identity-providers list": [
    ["List the login providers of your organisations", "arbor iam identity-providers list"],
  ],
  "iam identity-providers get": [
    ["Show one, with its redirect URI", "arbor iam identity-providers get acme.example/okta"],
  ],
  "iam identity-providers create": [
    [
      "Let the people of a login provider in",
      "arbor iam identity-providers create --parent acme.example --name okta --oidc-issuer https://acme.okta.com" +
        ' --oidc-client-id "$CLIENT_ID" --oidc-client-secret-file secret.txt',
    ],
  ],
  "iam identity-providers update": [
    [
      "Replace the client's secret",
      "arbor iam identity-providers update acme.example/okta --oidc-client-secret-file new.txt",
    ],
  ],
  "iam identity-providers delete": [
    ["Delete a login provider", "arbor iam identity-providers delete acme.example/okta"],
  ],
  "iam identity-providers generate-scim-token": [
    ["Create the token of a directory", "arbor iam identity-providers generate-scim-token acme.example/okta"],
  ],
  "iam identity-providers regenerate-scim-token": [
    [
      "Replace it; `arbor scim token rotate` needs no etag",
      'arbor iam identity-providers regenerate-scim-token acme.example/okta "$ETAG"',
    ],
  ],
  "iam identity-providers revoke-scim-token": [
    ["Revoke it", "arbor iam identity-providers revoke-scim-token acme.example/okta"],
  ],
  "iam identity-providers set-scim-enabled": [
    [
      "Turn SCIM on; `arbor scim enable` needs no etag",
      'arbor iam identity-providers set-scim-enabled acme.example/okta "$ETAG" --enabled',
    ],
  ],

  "iam account-associations list": [
    ["List the cloud accounts of a group", "arbor iam account-associations list --children-of acme.example"],
  ],
  "iam account-associations get": [
    ["Show those of a group", "arbor iam account-associations get acme.example/platform"],
  ],
  "iam account-associations create": [
    [
      "Associate a group with an account of AWS",
      "arbor iam account-associations create --parent acme.example/platform --name aws --amazon-account 123456789012",
    ],
  ],
  "iam account-associations update": [
    [
      "Name another account",
      "arbor iam account-associations update acme.example/platform --amazon-account 210987654321",
    ],
  ],
  "iam account-associations delete": [
    ["Remove the association", "arbor iam account-associations delete acme.example/platform"],
  ],
  "iam account-associations check": [
    ["Check an account with its provider", "arbor iam account-associations check acme.example/platform amazon"],
  ],

  "iam group-invites list": [
    ["See who is invited to a group", "arbor iam group-invites list --children-of acme.example/platform"],
  ],
  "iam group-invites get": [["Show one invite", 'arbor iam group-invites get "$INVITE"']],
  "iam group-invites create": [
    [
      "Invite somebody as a viewer",
      "arbor iam group-invites create --parent acme.example/platform --role viewer --email bob@acme.example --ttl 7d",
    ],
  ],
  "iam group-invites update": [["Make an invite single-use", 'arbor iam group-invites update "$INVITE" --single-use']],
  "iam group-invites delete": [["Delete an invite", 'arbor iam group-invites delete "$INVITE"']],

  "iam group-mappings list": [
    [
      "See which groups of a login provider grant roles",
      "arbor iam group-mappings list --children-of acme.example/okta",
    ],
  ],
  "iam group-mappings get": [["Show one mapping", 'arbor iam group-mappings get "$MAPPING"']],
  "iam group-mappings create": [
    [
      "Give the viewer role to a group of the directory",
      "arbor iam group-mappings create --parent acme.example/okta --external-group-id engineering --role viewer --scope acme.example",
    ],
  ],
  "iam group-mappings delete": [["Remove a mapping", 'arbor iam group-mappings delete "$MAPPING"']],
  "iam group-mappings batch-delete": [
    ["Remove several at once", 'arbor iam group-mappings batch-delete acme.example/okta --name "$MAPPING"'],
  ],
  "iam terms list": [["See the terms that an organisation has accepted", "arbor iam terms list --group acme.example"]],
  "iam terms accept": [["Accept a document", "arbor iam terms accept --group acme.example --document-id eula"]],
  "iam guard get": [["See which issuers an organisation trusts", "arbor iam guard get acme.example"]],
  "iam guard set": [
    [
      "Trust GitHub Actions alone",
      "arbor iam guard set acme.example --issuer https://token.actions.githubusercontent.com",
    ],
  ],
  "iam guard remove": [["Trust any issuer again", "arbor iam guard remove acme.example"]],

  "registry configure": [
    ["Write the configuration of a registry that trusts this service", "arbor registry configure --out registry"],
  ],
  "registry sync": [["Take over what is in the registry", "arbor registry sync --registry-url http://127.0.0.1:5000"]],
  "registry move": [
    ["Give images of verified organisations their names", "arbor registry move --registry-url http://127.0.0.1:5000"],
  ],
  "registry repos list": [
    ["List the repos of an organisation", "arbor registry repos list --descendants-of acme.example"],
  ],
  "registry repos get": [["Show one repo", "arbor registry repos get acme.example/app"]],
  "registry repos create": [["Create a repo", "arbor registry repos create --parent acme.example --name app"]],
  "registry repos update": [
    ["Describe a repo", "arbor registry repos update acme.example/app --description 'our app'"],
  ],
  "registry repos delete": [
    ["Delete a repo; its images stay in the registry", "arbor registry repos delete acme.example/app"],
  ],
  "registry repos tags-summary": [["Count the tags of a repo", "arbor registry repos tags-summary acme.example/app"]],
  "registry repos update-status": [
    ["See whether a repo has changed today", "arbor registry repos update-status acme.example/app"],
  ],
  "registry repos count-copies": [["Count the copies of a repo", "arbor registry repos count-copies acme.example/app"]],
  "registry readmes get": [["Read the readme of a repo", "arbor registry readmes get acme.example/app"]],
  "registry readmes update": [
    ["Replace it", "arbor registry readmes update acme.example/app --content-file README.md"],
  ],
  "registry catalog list": [["See what the catalogue has", "arbor registry catalog list"]],
  "registry tags list": [["List the tags of a repo", "arbor registry tags list --children-of acme.example/app"]],
  "registry tags get": [["Show what a tag points to", "arbor registry tags get acme.example/app:latest"]],
  "registry tags create": [
    ["Create a tag by hand", 'arbor registry tags create --parent acme.example/app --name v1 --digest "$DIGEST"'],
  ],
  "registry tags delete": [
    ["Delete a tag; its image stays in the registry", "arbor registry tags delete acme.example/app:v1"],
  ],
  "registry tags update": [
    ["Point a tag to another image", 'arbor registry tags update acme.example/app:v1 --digest "$DIGEST"'],
  ],
  "registry tags history": [["See where a tag has pointed", "arbor registry tags history acme.example/app:latest"]],
  "registry overlays list": [
    ["List the overlays of a group", "arbor registry overlays list --children-of acme.example"],
  ],
  "registry overlays get": [["Show one overlay", "arbor registry overlays get acme.example/debug-tools"]],
  "registry overlays create": [
    ["Create one from a file", "arbor registry overlays create --parent acme.example -f overlay.yaml"],
  ],
  "registry overlays update": [
    ["Replace its configuration", "arbor registry overlays update acme.example/debug-tools -f overlay.yaml"],
  ],
  "registry overlays delete": [["Delete it", "arbor registry overlays delete acme.example/debug-tools"]],
  "registry overlay-bindings list": [
    ["See which overlays a repo has", "arbor registry overlay-bindings list --children-of acme.example/app"],
  ],
  "registry overlay-bindings get": [["Show one", 'arbor registry overlay-bindings get "$OVERLAY_BINDING"']],
  "registry overlay-bindings create": [
    [
      "Apply an overlay to a repo",
      "arbor registry overlay-bindings create --parent acme.example/app --overlay debug-tools",
    ],
  ],
  "registry overlay-bindings update": [
    ["Change the tags that it is for", 'arbor registry overlay-bindings update "$OVERLAY_BINDING" -f binding.yaml'],
  ],
  "registry overlay-bindings delete": [["Remove it", 'arbor registry overlay-bindings delete "$OVERLAY_BINDING"']],
  "registry images architectures": [
    ["List the architectures of an image", 'arbor registry images architectures acme.example/app "$DIGEST"'],
  ],
  "registry images size": [["See how large an image is", 'arbor registry images size acme.example/app "$DIGEST"']],
  "registry images config": [["Read its configuration", 'arbor registry images config acme.example/app "$DIGEST"']],
  "registry images count-digests": [
    ["Count the images of an organisation", "arbor registry images count-digests acme.example"],
  ],
  "registry deployments get": [["Show the Helm charts of a repo", "arbor registry deployments get acme.example/app"]],
  "registry deployments create": [
    ["Name them", "arbor registry deployments create acme.example/app -f deployment.yaml"],
  ],
  "registry deployments update": [
    ["Replace them", "arbor registry deployments update acme.example/app -f deployment.yaml"],
  ],
  "registry settings get": [
    ["See the registry settings of an organisation", "arbor registry settings get acme.example"],
  ],
  "registry settings update": [["Replace them", "arbor registry settings update acme.example -f settings.yaml"]],

  "advisories import": [["Import OSV records", "arbor advisories import --group acme.example osv/"]],
  "advisories list": [
    ["List the advisories of an organisation", "arbor advisories list --descendants-of acme.example"],
  ],
  "advisories get": [["Show one advisory", 'arbor advisories get "$ADVISORY"']],
  "advisories create": [["Create one from a file", "arbor advisories create acme.example -f advisory.yaml"]],
  "advisories update": [["Replace one", 'arbor advisories update "$ADVISORY" -f advisory.yaml']],
  "advisories delete": [["Withdraw one", 'arbor advisories delete "$ADVISORY"']],
  "advisories events list": [["See what has happened to an advisory", 'arbor advisories events list "$ADVISORY"']],
  "advisories events create": [["Add what has happened", 'arbor advisories events create "$ADVISORY" -f event.yaml']],
  "advisories events update": [["Correct it", 'arbor advisories events update "$EVENT" -f event.yaml']],

  "events subscriptions list": [
    ["List the subscriptions of a group", "arbor events subscriptions list --children-of acme.example"],
  ],
  "events subscriptions get": [["Show one", 'arbor events subscriptions get "$SUBSCRIPTION"']],
  "events subscriptions create": [
    [
      "Send the events of a group to your own service",
      "arbor events subscriptions create --parent acme.example/platform --sink https://hooks.acme.example/arbor",
    ],
  ],
  "events subscriptions delete": [["Delete it", 'arbor events subscriptions delete "$SUBSCRIPTION"']],
  "events subscriptions state": [["See why events do not arrive", 'arbor events subscriptions state "$SUBSCRIPTION"']],
  "events subscriptions test": [
    ["Send an event, and see what the sink answers", 'arbor events subscriptions test "$SUBSCRIPTION"'],
  ],
  "events subscriptions suspend": [["Suspend it", 'arbor events subscriptions suspend "$SUBSCRIPTION"']],
  "events subscriptions resume": [["Resume it", 'arbor events subscriptions resume "$SUBSCRIPTION"']],
  "events deliveries list": [
    ["See which events were given up", 'arbor events deliveries list --subscription "$SUBSCRIPTION" --status dead'],
  ],
  "events deliveries redeliver": [
    [
      "Send the events of the last day again",
      'arbor events deliveries redeliver --subscription "$SUBSCRIPTION" --since 24h',
    ],
  ],
  "events listen": [["Watch what happens in an organisation", "arbor events listen --scope acme.example"]],

  "scim status": [["See how a directory is doing", "arbor scim status acme.example/okta"]],
  "scim users": [["List the people it has sent", "arbor scim users acme.example/okta"]],
  "scim groups": [["List the groups it has sent", "arbor scim groups acme.example/okta"]],
  "scim enable": [["Let a directory decide who may log in", "arbor scim enable acme.example/okta"]],
  "scim disable": [["Pause it", "arbor scim disable acme.example/okta"]],
  "scim token generate": [["Create its token", "arbor scim token generate acme.example/okta --expires 365d"]],
  "scim token rotate": [
    ["Replace its token, with an hour in which both work", "arbor scim token rotate acme.example/okta"],
  ],
  "scim token revoke": [["Revoke its token", "arbor scim token revoke acme.example/okta"]],

  "audit list": [
    ["See what was changed in an organisation since yesterday", "arbor audit list --scope acme.example --since 24h"],
    ["See what one person has changed", "arbor audit list --scope acme.example --actor ada@acme.example"],
  ],
  "audit tail": [["Watch changes as they happen", "arbor audit tail --scope acme.example"]],
  "audit verify": [["Verify that the log is unchanged", "arbor audit verify --scope acme.example --state head.json"]],
  "audit jwks": [["Keep the keys that sign the log", "arbor audit jwks --scope acme.example"]],
  "audit export": [["Export the events of an organisation", "arbor audit export --scope acme.example"]],
  "audit get": [["Show one event", 'arbor audit get "$EVENT_ID"']],

  apply: [
    ["See what a file would change", "arbor apply -f acme.yaml --dry-run"],
    ["Make the changes, after a question", "arbor apply -f acme.yaml"],
    ["Set up a second organisation like this one", "arbor apply -f acme.yaml --into test.example"],
    [
      "Make the changes in a pipeline, and delete what is no longer in the file",
      "arbor apply -f acme.yaml --prune --yes",
    ],
  ],
  export: [
    ["Keep an organisation in a file", "arbor export acme.example > acme.yaml"],
    ["Continue with Terraform", "arbor export acme.example -o terraform > acme.tf"],
  ],

  serve: [
    ["Run the service on SQLite", "arbor serve --data /var/lib/arbor --base-url https://platform.example.com"],
    ["Run it on PostgreSQL", "arbor serve --database-url-file /etc/arbor/database-url"],
  ],
  bootstrap: [
    [
      "Create an organisation, whose owner signs in with an address",
      "arbor bootstrap --org acme.example --owner-email ada@acme.example",
    ],
    ["Create one in a script, with the first token in a file", "arbor bootstrap --org acme.example --write owner.json"],
  ],
  "config print": [["See every setting and where it comes from", "arbor config print --config arbor.json"]],
  "config check": [["Check the settings before a start", "arbor config check --config arbor.json"]],
  "config schema": [["Let an editor check the file", "arbor config schema"]],
  migrate: [
    ["See what an upgrade would change", "arbor migrate --dry-run"],
    ["Upgrade the database while the version before runs", "arbor migrate --expand"],
  ],
  check: [["Check the database for faults", "arbor check --progress"]],
  backup: [["Copy the database while a server runs", "arbor backup /backups/monday"]],
  restore: [["Restore a backup", "arbor restore /backups/monday --data /var/lib/arbor"]],
  copy: [["Move to PostgreSQL", "arbor copy --to-url-file /etc/arbor/database-url"]],
  "admin token": [["Get a token for an owner who cannot log in", "arbor admin token --identity ada@acme.example"]],
  "admin bind": [
    ["Make an identity an owner", "arbor admin bind --identity ada@acme.example --role owner --group acme.example"],
  ],
  "admin unbind": [["Delete a binding", 'arbor admin unbind "$BINDING"']],
  "admin organisations list": [["List all organisations and their owners", "arbor admin organisations list"]],
  "admin identities list": [["See who is in an organisation", "arbor admin identities list --org acme.example"]],
  "admin identities revoke": [
    ["End all tokens and logins of an identity", "arbor admin identities revoke ada@acme.example"],
  ],
  "admin roles create": [
    ["Create a role of operators", "arbor admin roles create --name support --capability groups.list"],
  ],
  "admin roles list": [["List the roles of operators", "arbor admin roles list"]],
  "admin roles delete": [["Delete one", 'arbor admin roles delete "$ROLE"']],
  "admin groups verify": [
    ["Confirm that an organisation is what its name says", "arbor admin groups verify acme.example"],
  ],
  "admin quotas list": [["See how much an organisation uses", "arbor admin quotas list --org acme.example"]],
  "admin quotas set": [["Allow an organisation more repos", "arbor admin quotas set repos=500 --org acme.example"]],
  "admin keys rotate": [["Sign tokens with a new key", "arbor admin keys rotate --purpose api-token"]],
  "admin keys revoke": [["End all tokens that a key has signed", 'arbor admin keys revoke "$KID"']],
  "admin keys list": [["List the keys", "arbor admin keys list"]],
  "admin master-key rotate": [["Encrypt all secrets with a new key", "arbor admin master-key rotate"]],
  "admin master-key retire": [["Remove the old keys afterwards", "arbor admin master-key retire"]],
  "admin jobs list": [["See whether background jobs run", "arbor admin jobs list"]],

  "auth login": login,
  "auth logout": logout,
  "auth status": status,
  "auth token": [
    ["Call the API with curl", 'curl -H "Authorization: Bearer $(arbor auth token)" "$ARBOR_API/iam/v2beta1/groups"'],
  ],
  "auth configure-docker": [
    ["Let docker pull with your login", "arbor auth configure-docker --registry registry.acme.example"],
  ],
  "auth bindings list": [["See the roles that you can accept", "arbor auth bindings list --pending"]],
  "auth bindings accept": [["Accept one", 'arbor auth bindings accept "$BINDING"']],
  "auth bindings drop": [["Drop a role", 'arbor auth bindings drop "$BINDING"']],
  "auth sessions list": [["See where you are logged in", "arbor auth sessions list"]],
  "auth sessions revoke": [["End one of these logins", 'arbor auth sessions revoke "$SESSION"']],
  "auth pull-tokens create": [
    [
      "Create a password for a cluster that pulls images",
      "arbor auth pull-tokens create --group acme.example --name cluster --ttl 90d",
    ],
  ],
  "auth pull-tokens list": [["List pull tokens and when they end", "arbor auth pull-tokens list --group acme.example"]],
  "auth pull-tokens revoke": [["Revoke one", 'arbor auth pull-tokens revoke "$PULL_TOKEN"']],
  "api list": [["Find a method and the command that calls it", "arbor api list invite"]],
  "api call": [["Call a method without a command of its own", "arbor api call ping.v2.PingService/Ping"]],
};

/** Adds the examples of a command to its help. */
export function addExamples(command: Command): void {
  const lines = (examples[pathOf(command)] ?? []).map(([wish, line]) => `  # ${wish}\n  $ ${line}`);
  if (lines.length > 0) command.addHelpText("after", `\nExamples:\n${lines.join("\n\n")}`);
}
