// Faults that are planted with SQL, and what `arbor check` must find of each. The statements run on both databases.
import { uids } from "./world.js";

const { root, other, team, squad, repo, provider, advisory, gone } = uids;

/** A fault. */
export interface Fault {
  readonly reason: string;
  readonly sql: readonly string[];
  /** The findings, in the order in which they are printed: check, table, key and problem. */
  readonly found: readonly RegExp[];
}

const of = (table: string) => `(SELECT id FROM scopes WHERE uid = '${table}')`;
const MARK = "UPDATE scopes SET ranked = true";
const dangles = (check: string, table: string, key: string, column: string, target: string) =>
  new RegExp(`^${check}: ${table} ${key}: ${column} names \\S+, which is not in ${target}$`);

/** Faults of rows that nothing else is derived from: a repair leaves them. */
export const storedFaults: readonly Fault[] = [
  {
    reason: "a row of a deleted group, against a foreign key",
    sql: [
      `INSERT INTO terms_acceptances (group_uid, doc_id, accepted_by, create_time_ms) VALUES ('${gone}', 'd', 'x', 1)`,
    ],
    found: [dangles("references", "terms_acceptances", `group_uid=${gone}, doc_id=d`, "group_uid", "groups")],
  },
  {
    reason: "a binding of a role that does not exist",
    sql: [`UPDATE role_bindings SET role_uid = '${gone}' WHERE uid = '${uids.binding}'`],
    found: [dangles("references", "role_bindings", uids.binding, "role_uid", "roles")],
  },
  {
    reason: "a binding of a workload that was deleted",
    sql: [`UPDATE role_bindings SET identity_uid = '${root}/000000000000dead' WHERE uid = '${uids.binding}'`],
    found: [dangles("references", "role_bindings", uids.binding, "identity_uid", "identities")],
  },
  {
    reason: "a person of a provider that was deleted",
    sql: [`UPDATE identities SET provider_uid = '${root}/000000000000dead' WHERE uid = '${uids.person}'`],
    found: [dangles("references", "identities", uids.person, "provider_uid", "identity_providers")],
  },
  {
    reason: "a mapping to a group that was deleted",
    sql: [`UPDATE external_group_role_mappings SET scope = '${gone}'`],
    found: [dangles("references", "external_group_role_mappings", uids.mapping, "scope", "groups")],
  },
  {
    reason: "the history of a deleted tag",
    sql: [`INSERT INTO tag_history (tag_uid, time_ms, digest) VALUES ('${gone}', 1, 'd')`],
    found: [dangles("references", "tag_history", `tag_uid=${gone}, time_ms=1, digest=d`, "tag_uid", "tags")],
  },
  {
    reason: "the mark of a tag of a deleted repo",
    sql: [`UPDATE tag_marks SET repo_uid = '${gone}' WHERE name = 'deleted'`],
    found: [dangles("references", "tag_marks", `repo_uid=${gone}, name=deleted`, "repo_uid", "repos")],
  },
  {
    reason: "a manifest of a deleted repo",
    sql: [`UPDATE manifests SET repo_uid = '${gone}'`],
    found: [dangles("references", "manifests", `repo_uid=${gone}, digest=sha256:a`, "repo_uid", "repos")],
  },
  {
    reason: "a deployment of a deleted repo",
    sql: [`UPDATE deployments SET repo_uid = '${gone}'`],
    found: [dangles("references", "deployments", gone, "repo_uid", "repos")],
  },
  {
    reason: "an event of a deleted advisory",
    sql: [`UPDATE advisory_events SET advisory_uid = '${gone}'`],
    found: [
      dangles("references", "advisory_events", `${advisory}/0000000000000001`, "advisory_uid", "advisories"),
      new RegExp(`^advisory index: advisory_entries ${advisory}: the advisory is indexed with other values$`),
    ],
  },
  {
    reason: "an alias of a deleted advisory",
    sql: [`INSERT INTO advisory_aliases (alias, advisory_uid) VALUES ('CVE-2', '${gone}')`],
    found: [
      dangles("references", "advisory_aliases", `alias=CVE-2, advisory_uid=${gone}`, "advisory_uid", "advisories"),
    ],
  },
  {
    reason: "a verified group without a name in the registry",
    sql: [`DELETE FROM registry_names WHERE group_uid = '${other}'`],
    found: [new RegExp(`^references: groups ${other}: the verified group has no name in the registry$`)],
  },
  {
    reason: "a verified group with another name in the registry",
    sql: [`UPDATE registry_names SET name = 'b.example' WHERE group_uid = '${other}'`],
    found: [new RegExp(`^references: registry_names b.example: the group ${other} was verified under another name$`)],
  },
  {
    reason: "a row that is below another group than it says",
    sql: [`UPDATE external_group_role_mappings SET uid = '${root}/0000000000000051'`],
    found: [
      new RegExp(
        `^uids: external_group_role_mappings ${root}/0000000000000051: .* directly below ${provider}, its provider_uid$`,
      ),
      /^order index: time_entries list=64 .*: rows without an entry: 1, such as/,
      /^order index: time_entries list=64 .*: entries that belong to no row: 1$/,
      /^order index: totals counter=16 .*: the total is 1, and there are 0$/,
      /^order index: time_entries list=64 .*: entries that belong to no row: 1$/,
      /^order index: totals counter=17 .*: the total is 1, and there are 0$/,
    ],
  },
  {
    reason: "a row that says that it is below no group",
    sql: [`UPDATE account_associations SET parent_uid = NULL WHERE uid = '${team}'`],
    found: [
      new RegExp(`^uids: account_associations ${team}: the row has no parent, and its uid is not that of a root$`),
      new RegExp(`^order index: totals counter=13 .*\\(${root}\\): the total is 1, and there are 0$`),
    ],
  },
  {
    reason: "tags of a deleted repo",
    sql: [`DELETE FROM deployments`, `DELETE FROM manifests`, `DELETE FROM tag_marks`, `DELETE FROM repos`],
    found: [
      ...Array.from({ length: 8 }, () => new RegExp(`^references: tags ${repo}/\\w+: repo_uid names ${repo}`)),
      new RegExp(`^order index: scopes ${repo}: no row has this uid$`),
      // Those of the repo itself, below the root, the team and the squad.
      ...["text_entries", "time_entries", "time_entries", "totals"].map(
        (table) => new RegExp(`^order index: ${table} .*\\(repos.*scope=\\d+ \\(${root}\\)`),
      ),
      ...["text_entries", "time_entries", "time_entries", "totals"].map(
        (table) => new RegExp(`^order index: ${table} .*\\(repos.*scope=\\d+ \\(${team}\\)`),
      ),
      ...["text_entries", "time_entries", "time_entries", "totals", "totals"].map(
        (table) => new RegExp(`^order index: ${table} .*\\(repos.*scope=\\d+ \\(${squad}\\)`),
      ),
    ],
  },
  {
    reason: "a changed row of the audit log",
    sql: [`UPDATE audit SET actor_uid = 'x' WHERE id = 2`],
    found: [new RegExp(`^audit log: audit_chain ${root}, seq 2: row 2 is not what was sealed here`)],
  },
  {
    reason: "a removed row of the audit log",
    sql: [`DELETE FROM audit WHERE id = 3`],
    found: [new RegExp(`^audit log: audit_chain ${other}, seq 1: row 3 was removed$`)],
  },
  {
    reason: "a removed end of the audit log",
    sql: [`DELETE FROM audit_chain WHERE root_uid = '${root}' AND seq = 2`, `DELETE FROM audit WHERE id = 2`],
    found: [new RegExp(`^audit log: audit_chain ${root}, seq 2: the chain is cut`)],
  },
  {
    reason: "a key that does not open",
    sql: [`UPDATE keys SET sealed = 'AAAA' WHERE purpose = 'page-token'`],
    found: [/^keys: keys \w+: the key for page-token, which is active, does not open with the master key$/],
  },
  {
    reason: "a key of the audit log that does not open",
    sql: [`UPDATE keys SET sealed = 'AAAA' WHERE purpose = 'audit'`],
    found: [/^keys: keys \S+: the key for audit, which is active, does not open with the master key$/],
  },
  {
    reason: "a client secret that does not open",
    sql: [`UPDATE identity_providers SET sealed_secret = 'AAAA'`],
    found: [new RegExp(`^keys: identity_providers ${provider}: the client secret does not open`)],
  },
  {
    reason: "a login whose state does not open",
    sql: [`UPDATE tickets SET kind = 'code'`],
    found: [/^keys: tickets \w{64}: the state of a login does not open/],
  },
  {
    reason: "another master key",
    sql: [`UPDATE settings SET value = 'AAAA' WHERE name = 'master-key-check'`],
    found: [/^keys: settings master-key-check: the master key is not the one/],
  },
  {
    reason: "an index that is gone",
    sql: [`DROP INDEX roles_name`],
    found: [/^schema: roles roles_name: the index is missing$/],
  },
  {
    reason: "a table that is gone, without which nothing else is checked",
    sql: [`UPDATE keys SET sealed = 'AAAA'`, `DROP TABLE tag_marks`],
    found: [/^schema: tag_marks tag_marks: the table is missing$/],
  },
  {
    reason: "a column that is gone",
    sql: [`ALTER TABLE identities DROP COLUMN company`],
    found: [/^schema: identities company: the column is missing$/],
  },
];

/** Faults of what is derived from other rows: a repair mends them. */
export const derivedFaults: readonly Fault[] = [
  {
    reason: "an entry is missing",
    sql: [`DELETE FROM text_entries WHERE list = 8 AND scope = ${of(root)} AND key = 'group 57'`],
    found: [
      new RegExp(`^order index: text_entries list=8 .*\\(${root}\\): rows without an entry: 1, such as ${team}$`),
    ],
  },
  {
    reason: "an entry of the children of a group is missing",
    sql: [`DELETE FROM text_entries WHERE list = 15 AND scope = ${of(team)}`],
    found: [
      new RegExp(`^order index: text_entries list=15 .*\\(${team}\\): rows without an entry: 1, such as ${squad}$`),
    ],
  },
  {
    reason: "an entry belongs to no row",
    sql: [
      `INSERT INTO time_entries SELECT list, scope, key + 5, below FROM time_entries WHERE list = 97 AND scope = ${of(root)}`,
    ],
    found: [new RegExp(`^order index: time_entries list=97 .*\\(${root}\\): entries that belong to no row: 1$`)],
  },
  {
    reason: "a row changed without its entries",
    sql: [`UPDATE groups SET name = 'renamed' WHERE uid = '${team}'`],
    found: [8, 12].flatMap((list) => [
      new RegExp(`^order index: text_entries list=${list} .*\\(${root}\\): rows without an entry: 1, such as ${team}$`),
      new RegExp(`^order index: text_entries list=${list} .*\\(${root}\\): entries that belong to no row: 1$`),
    ]),
  },
  {
    reason: "a tag is of another family than in the index",
    sql: [`UPDATE tags SET family = 0 WHERE uid = '${repo}/0000000000000001'`],
    found: [root, team, squad, repo].flatMap((uid) => [
      ...["text_entries", "time_entries", "time_entries"].map(
        (table) => new RegExp(`^order index: ${table} list=(88|89|90) .*\\(${uid}\\): rows without an entry: 1`),
      ),
      new RegExp(`^order index: totals counter=22 .*\\(${uid}\\): the total is 2, and there are 3$`),
      ...(uid === repo
        ? [new RegExp(`^order index: totals counter=23 .*\\(${uid}\\): the total is 2, and there are 3$`)]
        : []),
    ]),
  },
  {
    reason: "a total is wrong",
    sql: [`UPDATE totals SET n = n + 1 WHERE counter = 8 AND scope = ${of(root)}`],
    found: [
      new RegExp(`^order index: totals counter=8 \\(role_bindings .*\\(${root}\\): the total is (\\d+), and there are`),
    ],
  },
  {
    reason: "a total counts what is not there",
    sql: [`INSERT INTO totals (counter, scope, slot, n) VALUES (25, ${of(squad)}, 0, 1)`],
    found: [new RegExp(`^order index: totals counter=25 .*\\(${squad}\\): the total is 1, and there are 0$`)],
  },
  {
    reason: "an entry of a list that no kind has",
    sql: [
      `INSERT INTO text_entries SELECT 999, scope, key, below FROM text_entries WHERE list = 15 AND scope = ${of(root)}`,
    ],
    found: [/^order index: text_entries list=999, scope=\d+: no kind declares the list.*rows: 1$/],
  },
  {
    reason: "a total that no kind has",
    sql: [`INSERT INTO totals (counter, scope, slot, n) VALUES (999, ${of(root)}, 0, 1)`],
    found: [/^order index: totals counter=999, scope=\d+: no kind declares the list/],
  },
  {
    reason: "an entry and a total of no scope",
    sql: [
      `INSERT INTO time_entries SELECT list, 999, key, below FROM time_entries WHERE list = 9 AND scope = ${of(team)}`,
      `INSERT INTO totals (counter, scope, slot, n) VALUES (2, 999, 0, 1)`,
    ],
    found: [
      /^order index: time_entries list=9, scope=999: .* no such scope; rows: 1$/,
      /^order index: totals counter=2, scope=999: .* no such scope; rows: 1$/,
    ],
  },
  {
    reason: "a scope that no row has",
    sql: [`INSERT INTO scopes (uid) VALUES ('${gone}')`],
    found: [new RegExp(`^order index: scopes ${gone}: no row has this uid$`)],
  },
  {
    reason: "a scope is missing",
    sql: [
      `DELETE FROM time_entries WHERE scope = ${of(provider)}`,
      `DELETE FROM totals WHERE scope = ${of(provider)}`,
      `DELETE FROM scopes WHERE uid = '${provider}'`,
    ],
    found: [
      new RegExp(
        `^order index: scopes ${provider}: the scope is missing, although it has external_group_role_mappings: 1$`,
      ),
    ],
  },
  {
    reason: "an alias is missing",
    sql: [`DELETE FROM advisory_aliases WHERE alias = 'CVE-1'`],
    found: [
      new RegExp(
        `^advisory aliases: advisory_aliases alias=CVE-1, advisory_uid=${advisory}: the alias of the advisory is missing$`,
      ),
    ],
  },
  {
    reason: "an alias that the advisory does not have",
    sql: [`UPDATE advisory_aliases SET alias = 'CVE-2' WHERE alias = 'CVE-1'`],
    found: [
      /alias=CVE-1, .*: the alias of the advisory is missing$/,
      /alias=CVE-2, .*: the advisory does not have this/,
    ],
  },
  {
    reason: "an advisory is not indexed",
    sql: ["DELETE FROM advisory_entries", "DELETE FROM advisory_facets", "DELETE FROM advisory_postings"],
    found: [new RegExp(`^advisory index: advisory_entries ${advisory}: the advisory is not indexed$`)],
  },
  {
    reason: "an advisory is indexed with another time",
    sql: ["UPDATE advisory_entries SET update_time_ms = update_time_ms + 1"],
    found: [new RegExp(`^advisory index: advisory_entries ${advisory}: the advisory is indexed with other values$`)],
  },
  {
    reason: "the index has an advisory that is gone",
    sql: [`UPDATE advisory_entries SET uid = '${gone}'`],
    found: [
      new RegExp(`^advisory index: advisory_entries ${advisory}: the advisory is not indexed$`),
      new RegExp(`^advisory index: advisory_entries ${gone}: there is no such advisory$`),
    ],
  },
  {
    reason: "a filter finds an advisory that does not have the value",
    sql: ["UPDATE advisory_postings SET value = 'b' WHERE value = 'a'"],
    found: [
      /^advisory index: advisory_postings root=\d+, filter=artifactNames: the filter does not find what is indexed$/,
    ],
  },
  {
    reason: "a rank counts more than there is",
    sql: [
      MARK,
      `INSERT INTO text_ranks SELECT list, scope, key, below, 0, 5 FROM text_entries
        WHERE list = 8 AND scope = ${of(root)} AND key = 'group 57'`,
    ],
    found: [/^ranks: text_ranks list=8, scope=\d+, key=group 57, .*: the rank is 5, and there are 2 entries$/],
  },
  {
    reason: "a list that is ranked from its second entry on",
    sql: [
      MARK,
      `INSERT INTO text_ranks SELECT list, scope, key, below, 0, 1 FROM text_entries
        WHERE list = 8 AND scope = ${of(root)} AND key = 'group 74'`,
    ],
    found: [/^ranks: text_ranks list=8, .*: it is the first position of its list, and there are 1 entries before it$/],
  },
  {
    reason: "a rank of the order of uids counts less than there is",
    sql: [
      MARK,
      `INSERT INTO text_ranks SELECT 11, scope, '', below, 0, 1 FROM text_entries WHERE list = 15 AND scope = ${of(root)}`,
    ],
    found: [/^ranks: text_ranks list=11, .*: the rank is 1, and there are 2 entries$/],
  },
  {
    reason: "a rank between two positions",
    sql: [
      MARK,
      `INSERT INTO time_ranks SELECT list, scope, key, below, 0, 0 FROM time_entries WHERE list = 81 AND scope = ${of(repo)}`,
    ],
    found: Array.from({ length: 8 }, () => /^ranks: time_ranks list=81, .*: the rank is 0, and there are 1 entries$/),
  },
  {
    reason: "ranks of a list that no kind has, and of no scope",
    sql: [
      MARK,
      `INSERT INTO text_ranks SELECT 999, scope, key, below, 0, 1 FROM text_entries WHERE list = 15 AND scope = ${of(root)}`,
      `INSERT INTO text_ranks SELECT 11, 999, '', below, 0, 1 FROM text_entries WHERE list = 15 AND scope = ${of(root)}`,
    ],
    found: [
      /^ranks: text_ranks list=999, .*: nothing declares its list$/,
      /^ranks: text_ranks list=11, scope=999, .*: the rank is 1, and there are 0 entries$/,
    ],
  },
  {
    reason: "a scope is not marked, although its lists have ranks",
    sql: [
      `INSERT INTO time_ranks SELECT list, scope, key, below, 0, 1 FROM time_entries WHERE list = 9 AND scope = ${of(team)}`,
    ],
    found: [new RegExp(`^ranks: scopes ${team}: lists of scope \\d+ have ranks, and it is not marked as ranked$`)],
  },
];

/** Ranks as they may be: counted, in slots, and not counted yet. */
export const soundRanks: readonly string[] = [
  MARK,
  `INSERT INTO text_ranks SELECT list, scope, key, below, 0, 3 FROM text_entries
    WHERE list = 8 AND scope = ${of(root)} AND key = 'group 57'`,
  `INSERT INTO text_ranks SELECT list, scope, key, below, 1, -2 FROM text_ranks WHERE list = 8`,
  `INSERT INTO text_ranks SELECT list, scope, key, below, 0, 1 FROM text_entries
    WHERE list = 8 AND scope = ${of(root)} AND key = 'group 74'`,
  `INSERT INTO text_ranks SELECT 11, scope, '', below, 0, 2 FROM text_entries WHERE list = 15 AND scope = ${of(root)}`,
  `INSERT INTO time_ranks SELECT list, scope, key, below, 0, NULL FROM time_entries WHERE list = 81 AND scope = ${of(repo)}`,
];
