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

const counterIs = (counter: number | string, scope: string, n: string, expected: string) =>
  new RegExp(
    `^counters: counters counter=${counter} .*, scope=${scope}: the counter is ${n}, and there are ${expected}$`,
  );
const dangles = (check: string, table: string, key: string, column: string, target: string) =>
  new RegExp(`^${check}: ${table} ${key}: ${column} names \\S+, which is not in ${target}$`);

const isMissing = (filter: number, value: string): RegExp =>
  new RegExp(
    `^advisory values: advisory_values root_uid=\\w+, filter=${filter}, value=${value}, number=\\d+: the filter \\w+ does not find the advisory by this value$`,
  );

const isExtra = (filter: number, value: string, number: number | string = "\\d+"): RegExp =>
  new RegExp(
    `^advisory values: advisory_values root_uid=\\w+, filter=${filter}, value=${value}, number=${number}: no advisory has this value for the filter \\w+$`,
  );

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
    reason: "a binding that the directory of a deleted provider manages",
    sql: [`UPDATE role_bindings SET managed_by_uid = '${root}/000000000000dead' WHERE uid = '${uids.binding}'`],
    found: [dangles("references", "role_bindings", uids.binding, "managed_by_uid", "identity_providers")],
  },
  {
    reason: "a person of a provider that was deleted",
    sql: [`UPDATE identities SET provider_uid = '${root}/000000000000dead' WHERE uid = '${uids.person}'`],
    found: [dangles("references", "identities", uids.person, "provider_uid", "identity_providers")],
  },
  {
    reason: "a person of a directory who is linked with an identity that was deleted",
    sql: [`UPDATE scim_users SET identity_uid = '${gone}' WHERE uid = '${uids.scimUser}'`],
    found: [dangles("references", "scim_users", uids.scimUser, "identity_uid", "identities")],
  },
  {
    reason: "a deleted person of a directory who was linked with an identity that was deleted",
    sql: [
      `UPDATE former_scim_users SET identity_uid = '${gone}'`,
      `UPDATE identities SET deactivate_time_ms = NULL WHERE uid = '${uids.former}'`,
    ],
    found: [
      dangles(
        "references",
        "former_scim_users",
        `provider_uid=${provider}, external_id=d`,
        "identity_uid",
        "identities",
      ),
    ],
  },
  {
    reason: "a deactivated identity whose person is active",
    sql: [`UPDATE identities SET deactivate_time_ms = 1 WHERE uid = '${uids.person}'`],
    found: [
      new RegExp(
        `^references: identities ${uids.person}: the identity is deactivated, and no person of its directory is$`,
      ),
    ],
  },
  {
    reason: "a deactivated identity whose person is gone",
    sql: ["DELETE FROM former_scim_users"],
    found: [
      new RegExp(
        `^references: identities ${uids.former}: the identity is deactivated, and no person of its directory is$`,
      ),
    ],
  },
  {
    reason: "an identity that is active, and its person is inactive",
    sql: [`UPDATE identities SET deactivate_time_ms = NULL WHERE uid = '${uids.inactive}'`],
    found: [
      new RegExp(
        `^references: scim_users \\S+: the directory has deactivated the person, and the identity ${uids.inactive} is active$`,
      ),
    ],
  },
  {
    reason: "an identity that is active, and its person is deleted",
    sql: [`UPDATE identities SET deactivate_time_ms = NULL WHERE uid = '${uids.former}'`],
    found: [
      new RegExp(
        `^references: former_scim_users provider_uid=\\S+, external_id=d: the directory has deactivated the person, and the identity ${uids.former} is active$`,
      ),
    ],
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
    reason: "a binding of a deleted overlay",
    sql: [`UPDATE overlay_bindings SET overlay_uid = '${gone}'`],
    found: [dangles("references", "overlay_bindings", uids.overlayBinding, "overlay_uid", "overlays")],
  },
  {
    reason: "an event of a deleted advisory",
    sql: [`UPDATE advisory_events SET advisory_uid = '${gone}'`],
    found: [
      dangles("references", "advisory_events", `${advisory}/0000000000000001`, "advisory_uid", "advisories"),
      ...[11, 12, 13, 14].map((filter) => isExtra(filter, "[01]?")),
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
      counterIs(65, root, "0", "1"),
      counterIs(64, provider, "1", "0"),
      counterIs(65, provider, "1", "0"),
    ],
  },
  {
    reason: "a row that says that it is below no group",
    sql: [`UPDATE account_associations SET parent_uid = NULL WHERE uid = '${team}'`],
    found: [
      new RegExp(`^uids: account_associations ${team}: the row has no parent, and its uid is not that of a root$`),
    ],
  },
  {
    reason: "tags of a deleted repo",
    sql: [`DELETE FROM deployments`, `DELETE FROM manifests`, `DELETE FROM tag_marks`, `DELETE FROM repos`],
    found: [
      ...Array.from({ length: 8 }, () => new RegExp(`^references: tags ${repo}/\\w+: repo_uid names ${repo}`)),
      new RegExp(`^references: overlay_bindings ${repo}/\\w+: repo_uid names ${repo}`),
      ...["a", "b"].map(
        (tag) => new RegExp(`^references: overlay_selections repo_uid=${repo}, selection=tag ${tag}: repo_uid names`),
      ),
      counterIs(72, root, "1", "0"),
      counterIs(72, team, "1", "0"),
      counterIs(72, squad, "1", "0"),
      counterIs(73, squad, "1", "0"),
      new RegExp(
        `^words of names: name_words root_uid=${root}, kind=9, word=\\w+, uid=${repo}: no name has this word$`,
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
    reason: "the root of a row is another than its uid says",
    sql: [`UPDATE groups SET root_uid = '${other}' WHERE uid = '${team}'`],
    found: [new RegExp(`^roots: groups ${team}: root_uid is ${other}, which is not the first segment of the uid$`)],
  },
  {
    reason: "a tag is of another family than was counted",
    sql: [`UPDATE tags SET family = 0 WHERE uid = '${repo}/0000000000000001'`],
    found: [
      new RegExp(`^counters: tags ${repo}/0000000000000001: family is 0, which is not that of the name$`),
      ...[repo, squad, team, root].flatMap((uid) => [
        counterIs(80, uid, "2", "3"),
        ...(uid === repo ? [counterIs(81, uid, "2", "3")] : []),
        counterIs(82, uid, "2", "1"),
        ...(uid === repo ? [counterIs(83, uid, "2", "1")] : []),
      ]),
    ],
  },
  {
    reason: "a counter is wrong",
    sql: [`UPDATE counters SET n = n + 1 WHERE counter = 32 AND scope = '${root}'`],
    found: [counterIs("32 \\(role_bindings", root, "\\d+", "\\d+")],
  },
  {
    reason: "a counter counts what is not there",
    sql: [`INSERT INTO counters (counter, scope, slot, n) VALUES (97, '${squad}', 0, 1)`],
    found: [counterIs(97, squad, "1", "0")],
  },
  {
    reason: "a counter that no kind has",
    sql: [`INSERT INTO counters (counter, scope, slot, n) VALUES (999, '${root}', 0, 1)`],
    found: [
      new RegExp(
        `^counters: counters counter=999, scope=${root}: no kind has a counter of this number; its value is 1$`,
      ),
    ],
  },
  {
    reason: "a counter of a group that is gone",
    sql: [`INSERT INTO counters (counter, scope, slot, n) VALUES (8, '${gone}', 0, 1)`],
    found: [counterIs(8, gone, "1", "0")],
  },
  {
    reason: "what a binding selects is not stored",
    sql: [`DELETE FROM overlay_selections WHERE selection = 'tag a'`],
    found: [
      new RegExp(
        `^overlay selections: overlay_selections repo_uid=${repo}, selection=tag a: the binding ${uids.overlayBinding} selects it, and it is not stored$`,
      ),
    ],
  },
  {
    reason: "a binding selects more than it says",
    sql: [`INSERT INTO overlay_selections VALUES ('${repo}', 'tag c', '${uids.overlayBinding}')`],
    found: [
      new RegExp(
        `^overlay selections: overlay_selections repo_uid=${repo}, selection=tag c: the binding ${uids.overlayBinding} does not select it$`,
      ),
    ],
  },
  {
    reason: "the words of a name are not stored",
    sql: [`DELETE FROM name_words WHERE uid = '${provider}'`],
    found: [
      new RegExp(
        `^words of names: name_words root_uid=${root}, kind=5, word=\\w+, uid=${provider}: a word of a name is not stored$`,
      ),
    ],
  },
  {
    reason: "words that no name has",
    sql: [
      `INSERT INTO name_words (root_uid, kind, word, uid) VALUES ('${root}', 5, 'zz', '${provider}'), ('${root}', 1, 'zz', '${gone}'), ('${root}', 4, 'zz', '${root}')`,
    ],
    found: [
      new RegExp(
        `^words of names: name_words root_uid=${root}, kind=5, word=zz, uid=${provider}: no name has this word$`,
      ),
      new RegExp(`^words of names: name_words root_uid=${root}, kind=1, word=zz, uid=${gone}: no name has this word$`),
      new RegExp(
        `^words of names: name_words root_uid=${root}, kind=4, word=zz, uid=${root}: no kind has this number$`,
      ),
    ],
  },
  {
    reason: "the counters of a provider are missing",
    sql: [`DELETE FROM counters WHERE scope = '${provider}'`],
    found: [64, 65, 128, 129, 136, 137].map((counter) =>
      counterIs(counter, provider, "0", [128, 129].includes(counter) ? "3" : "1"),
    ),
  },
  {
    reason: "a value of an advisory is missing",
    sql: ["DELETE FROM advisory_values WHERE filter = 3"],
    found: [isMissing(3, "a")],
  },
  {
    reason: "a filter finds an advisory by an alias that it does not have",
    sql: ["UPDATE advisory_values SET value = 'CVE-2' WHERE value = 'CVE-1'"],
    found: [isMissing(10, "CVE-1"), isExtra(10, "CVE-2")],
  },
  {
    reason: "a filter finds an advisory by what events of another state had",
    sql: [`UPDATE advisory_values SET value = '3' WHERE filter = 11`],
    found: [isMissing(11, "0"), isExtra(11, "3")],
  },
  {
    reason: "values are in another organisation",
    sql: [`UPDATE advisory_values SET root_uid = '${other}' WHERE filter IN (1, 14)`],
    found: [isMissing(1, "A-1"), isExtra(1, "A-1"), isMissing(14, "1"), isExtra(14, "1")],
  },
  {
    reason: "values of an advisory that is gone",
    sql: [
      `INSERT INTO advisory_values (root_uid, filter, value, number) VALUES ('${root}', 4, 'apk', 1000), ('${root}', 12, '', 1000)`,
    ],
    found: [isExtra(4, "apk", 1000), isExtra(12, "", 1000)],
  },
  {
    reason: "values of a filter that does not exist",
    sql: [`INSERT INTO advisory_values (root_uid, filter, value, number) VALUES ('${root}', 99, 'x', 1)`],
    found: [/^advisory values: advisory_values root_uid=\w+, filter=99, value=x, number=1: there is no filter 99$/],
  },
];

/** Counters as they may be: in slots that no transaction has chosen, and empty. */
export const soundCounters: readonly string[] = [
  `INSERT INTO counters (counter, scope, slot, n) SELECT counter, scope, slot + 50, 5 FROM counters WHERE counter = 8`,
  `INSERT INTO counters (counter, scope, slot, n) SELECT counter, scope, slot + 50, -5 FROM counters WHERE slot >= 50`,
  `INSERT INTO counters (counter, scope, slot, n) VALUES (9, '${gone}', 0, 0)`,
];
