// Reads over REST what a database fixture contains.

const PAGE = "page_size=200";

/** The person of another organisation, by a login provider that is never contacted. */
export const GUEST = { issuer: "https://login.guest.example", subject: "ann" };

/** Lists of version 2 with the field that holds the resources, and whether each resource can be read by itself. */
const LISTS = [
  ["/iam/v2beta1/groups", "groups"],
  ["/iam/v2beta1/identities", "identities"],
  ["/iam/v2beta1/roles", "roles"],
  ["/iam/v2beta1/roleBindings", "roleBindings"],
  ["/iam/v2beta1/identityProviders", "identityProviders"],
  ["/iam/v2beta1/externalGroupRoleMappings", "externalGroupRoleMappings"],
  ["/iam/v2beta1/accountAssociations", "accountAssociations"],
  ["/iam/v2beta1/groupInvites", "groupInvites"],
  ["/events/v2beta1/subscriptions", "subscriptions"],
  ["/registry/v2beta1/repos", "repos"],
  ["/registry/v2beta1/tags", "tags"],
  ["/registry/v2beta1/overlays", "overlays"],
  ["/registry/v2beta1/overlayBindings", "overlayBindings"],
  ["/vulnerabilities/v2beta1/advisories", "advisories"],
];

const LISTS_V1 = [
  "/iam/v1/groups",
  "/iam/v1/identities",
  "/iam/v1/roles",
  "/iam/v1/rolebindings",
  "/iam/v1/identityProviders",
  "/iam/v1/externalGroupRoleMappings",
  "/iam/v1/account_associations",
  "/iam/v1/group_invites",
  "/events/v1/subscriptions",
  "/registry/v1/repos",
  "/registry/v1/tags",
  "/vulnerabilities/v1/advisories",
];

/**
 * Reads everything that the owner of an organisation can read.
 *
 * @param get sends a GET of a path and returns the JSON of its response
 * @param root the uid of the organisation
 * @param guest the uid of a person of another organisation who has a binding
 * @returns the responses by path
 */
export async function readAnswers(get, root, guest) {
  const answers = {};
  const ask = async (path) => {
    answers[path] = await get(path);
    return answers[path];
  };
  for (const [path, field] of LISTS) {
    const resources = (await ask(`${path}?${PAGE}`))[field];
    // The list of roles includes the built-in ones; one represents them all.
    const own = resources.filter(({ uid }) => uid.startsWith(`${root}/`) || uid === root);
    if (own.length === 0) throw new Error(`${path} lists nothing of the organisation`);
    for (const { uid } of new Set([own[0], own.at(-1), resources[0]])) await ask(`${path}/${uid}`);
  }
  for (const path of LISTS_V1) {
    if ((await ask(path)).items.length === 0) throw new Error(`${path} lists nothing`);
  }
  const repos = answers[`/registry/v2beta1/repos?${PAGE}`].repos;
  const app = repos.find(({ name }) => name === "app").uid;
  const latest = answers[`/registry/v2beta1/tags?${PAGE}`].tags.find(({ name }) => name === "latest").uid;
  const advisory = answers["/vulnerabilities/v1/advisories"].items[0].id;
  const engineering = answers[`/iam/v2beta1/groups?${PAGE}`].groups.find(({ name }) => name === "engineering").uid;
  const { identities } = answers[`/iam/v2beta1/identities?${PAGE}`];
  const conditional = identities.find(({ name }) => name === "conditional").uid;
  const person = new URLSearchParams(GUEST);
  const others = [
    `/iam/v2beta1/groups?${PAGE}&uidp.descendants_of=${root}&order_by=name%20desc`,
    `/iam/v2beta1/groups?${PAGE}&uidp.children_of=${root}&order_by=updated_at&skip=1`,
    `/iam/v2beta1/groups?${PAGE}&name=storage`,
    `/iam/v2beta1/identities?${PAGE}&uidp.descendants_of=${engineering}&order_by=created_at%20desc`,
    `/iam/v2beta1/identities?${PAGE}&relationship_type=RELATIONSHIP_TYPE_STATIC`,
    `/iam/v2beta1/identities:lookupIdentity?${person}`,
    `/trust/v1/identities/${conditional}/conditions`,
    `/bindings/v1/temporaryBindings?${PAGE}`,
    `/iam/v1/identities/lookup?${person}`,
    `/iam/v2beta1/roles?${PAGE}&name=deployer`,
    `/iam/v2beta1/roleBindings?${PAGE}&identity=${guest}`,
    `/iam/v2beta1/terms/${root}?${PAGE}`,
    `/iam/v1/terms/${root}`,
    `/iam/v2/groups/${engineering}`,
    `/registry/v2beta1/repos?${PAGE}&name=app`,
    `/registry/v2beta1/repos/${app}/readme`,
    `/registry/v2beta1/tags?${PAGE}&include_referrers=true&include_dates=true&order_by=updated_at%20desc`,
    `/registry/v2beta1/tags?${PAGE}&include_epochs=true&include_vcs_snapshots=true`,
    `/registry/v1/repotagssummary/${app}`,
    `/registry/v1/repocountbysource/${app}`,
    `/registry/v1/tags/${latest}/history`,
    `/registry/v1/settings/${root}`,
    `/vulnerabilities/v1/advisories/${advisory}/events`,
    `/vulnerabilities/v2beta1/advisories?${PAGE}&aliases=CVE-2024-1`,
  ];
  for (const path of others) await ask(path);
  return answers;
}

/** Reads what a person of another organisation sees: groups, identities and bindings. */
export async function readGuestAnswers(get) {
  const answers = {};
  for (const path of ["/iam/v2beta1/groups", "/iam/v2beta1/identities", "/iam/v2beta1/roleBindings"]) {
    const url = `${path}?${PAGE}`;
    answers[url] = await get(url);
  }
  return answers;
}

/**
 * Reads the first pages of lists in several orders, and what is on the pages after them.
 *
 * @param get sends a GET of a path and returns the JSON of its response
 * @param root the uid of the organisation
 * @returns when the page tokens were made, and for each list its path, its page token and the uids on the page after it
 */
export async function readPageTokens(get, root) {
  const createTime = new Date().toISOString();
  const lists = [];
  for (const path of [
    "/iam/v2beta1/groups?page_size=1",
    `/iam/v2beta1/groups?page_size=1&uidp.descendants_of=${root}&order_by=name%20desc`,
    `/iam/v2beta1/groups?page_size=1&uidp.descendants_of=${root}&order_by=created_at`,
    `/iam/v2beta1/groups?page_size=1&uidp.descendants_of=${root}&skip=1`,
    `/iam/v2beta1/groups?page_size=1&uidp.children_of=${root}&order_by=updated_at%20desc`,
    `/iam/v2beta1/groups?page_size=1&uidp.children_of=${root}&order_by=name`,
    "/iam/v2beta1/identities?page_size=1&order_by=created_at%20desc",
    "/iam/v2beta1/roles?page_size=2&order_by=name",
    "/iam/v2beta1/roleBindings?page_size=1",
    "/iam/v2beta1/groupInvites?page_size=1",
    "/registry/v2beta1/repos?page_size=1&order_by=updated_at",
    "/registry/v2beta1/tags?page_size=1&order_by=name%20desc",
    "/registry/v2beta1/tags?page_size=1&include_referrers=true",
    "/vulnerabilities/v2beta1/advisories?page_size=1",
  ]) {
    const { nextPageToken: pageToken } = await get(path);
    const resources = Object.values(await get(`${path}&page_token=${pageToken}`)).find(Array.isArray);
    lists.push({ path, pageToken, uids: resources.map(({ uid }) => uid) });
  }
  return { createTime, lists };
}
