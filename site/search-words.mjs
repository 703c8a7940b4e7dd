// What the search knows about words. Each list is in lower case; endings do not matter, because words are compared by
// their stems (site/search.mjs).

/** Words that say nothing about a page. They are left out of a search, unless it has no others. */
export const stopWords =
  `a about anyone again all also am an and any are aren't as at be been being but by can can't cannot could couldn't did
  didn't do does doesn't doing don't everybody everyone for from had has have having he her here hers him his i i'd i'll i'm if in into is isn't it
  it's its just let me may my no not of off on or our ours out please possible she should shouldn't so some somebody somehow someone than that the
  their them then there these they this those to too up us was wasn't way we were what's will with won't would you your`.split(
    /\s+/,
  );

/** Words that say little. They count for less, and a page need not have them. */
export const weakWords =
  `able best get give happen happens how instead list make makes making need needs new only own put server service set show
  thing use using want what when where which who whom whose why work works`.split(/\s+/);

/** Words that people use for the same thing. A page with another word of a line is found as well, after those with the word itself. */
export const synonyms = `
  person people user human member someone somebody employee colleague teammate coworker developer staff
  team group folder department
  organisation organization org company tenant customer
  add create invite onboard join
  remove delete drop offboard leave
  revoke invalidate withdraw block ban disable deactivate
  fired left quit leaver offboarding leave remove
  permission right access privilege capability authorization authorisation
  role permission rbac
  allow grant permit let
  denied deny refused rejected forbidden unauthorized unauthorised 401 403 cannot
  restrict limit condition narrow
  branch ref main master
  audit log history changed
  audit yesterday recently today ago
  login signin sso authenticate authentication logon
  logout signout
  provider idp
  oidc openid oauth
  directory scim provisioning entra okta
  token credential secret key
  leaked stolen compromised exposed lost
  rotate renew roll refresh replace
  pipeline ci workflow runner job build
  workload bot robot
  kubernetes k8s cluster pod
  image oci
  push upload publish
  pull download
  repo repository
  registry docker
  backup dump snapshot
  restore recover recovery
  nightly daily schedule cron
  upgrade update migrate version
  install deploy setup
  start begin
  setting option configuration parameter
  proxy nginx haproxy caddy ingress
  tls https ssl certificate
  postgresql postgres pg database
  sqlite database
  webhook event subscription sink notification notify
  slack webhook
  metric monitoring prometheus grafana
  alert alarm alerting
  quota limit maximum number amount
  raise increase enlarge
  move transfer relocate reparent copy migrate
  export report csv
  terraform hcl iac
  command cli terminal shell
  browser firefox chrome safari
  console ui dashboard gui
  error failure problem troubleshoot failed
  slow performance latency throughput
  scale scaling replica node worker
  docs documentation manual guide
  binding grant assign assignment
  identity account
  owner admin administrator
  read see view
  supported support platform requirement requires
  uninstall remove
`
  .trim()
  .split("\n")
  .map((line) => line.trim().split(" "));

/** Words in a row that are searched as others. */
export const phrases = {
  "why can't": "denied access explain",
  "why cannot": "denied access explain",
  "why can": "access explain",
  "who can": "access allowed",
  "who has": "access",
  "who did": "audit",
  "who changed": "audit changed",
  "who deleted": "audit deleted",
  "what changed": "audit changed",
  "what happened": "audit events",
  "not allowed": "denied",
  "permission denied": "denied access explain",
  "access denied": "denied access explain",
  "who may": "access allowed",
  "read only": "viewer role read",
  "reverse proxy": "proxy nginx",
  "load balancer": "proxy",
  "sign in": "login",
  "signing in": "login",
  "sign on": "login",
  "log in": "login",
  "logging in": "login",
  "log out": "logout",
  "sign out": "logout",
  "set up": "install setup",
  "get started": "first hour start",
  "getting started": "first hour start",
  "quick start": "first hour start",
  "first time": "first hour start",
  "start a service": "first hour start",
  "start the service": "first hour start",
  "no longer": "without",
  "go away": "leave remove",
  "left the company": "offboarding leaves",
  "leaves the company": "offboarding leaves",
  "identity provider": "identity provider login",
  "api key": "token",
  "access token": "token",
  "service account": "identity workload",
  "two factor": "login provider",
  "second factor": "login provider",
  "multi factor": "login provider",
  "active directory": "scim directory entra",
  "high availability": "standby nodes availability",
  "zero downtime": "interruption upgrade rotate",
  "without downtime": "interruption upgrade rotate",
};

/**
 * What Arbor does not have, and what it has instead: shown above the results. `to` is a page, with a heading where one says
 * it.
 */
export const hints = [
  {
    words: "saml",
    like: "oidc login provider",
    text: "Arbor has no SAML. People sign in at a login provider over OpenID Connect, which most providers of SAML offer too.",
    to: "login",
  },
  {
    words: "sso, single sign-on",
    like: "login provider",
    text: "Single sign-on: people sign in at a login provider over OpenID Connect, that of the service or of their organisation.",
    to: "login",
  },
  {
    words: "mfa, 2fa, totp, passkey, webauthn, yubikey, two factor, second factor, multi factor",
    like: "login provider",
    text: "Arbor asks for no second factor. The login provider does, before people come back to Arbor.",
    to: "login",
  },
  {
    words: "password, passwords",
    like: "login provider",
    text: "Arbor stores no passwords. People sign in at a login provider.",
    to: "login",
  },
  {
    words: "ldap, active directory",
    like: "scim directory",
    text: "Arbor does not read LDAP. A directory sends people and groups by SCIM, such as Entra ID or Okta.",
    to: "scim",
  },
  {
    words: "helm, helm chart",
    like: "kubernetes",
    text: "Arbor has no Helm chart. The manifests for Kubernetes are overlays for kubectl apply -k, in deploy/kubernetes.",
    to: "kubernetes",
  },
  {
    words: "cel, rego, opa, policy language",
    like: "conditions identity",
    text: "Arbor has no CEL or Rego. Conditions compare claims of tokens: equal, one of, prefix, pattern, contains.",
    to: "trust#conditions-of-an-identity",
  },
  {
    words: "api key, api keys, apikey, personal access token, pat, static token",
    like: "token identity workload",
    text: "Arbor has no API keys. Programs exchange the OIDC token of their platform for an API token that is valid for an hour.",
    to: "workloads",
  },
  {
    words: "service account, service accounts, serviceaccount, bot account, robot account",
    like: "identity workload",
    text: "In Arbor a service account is an identity: a workload that assumes it with a token of its platform.",
    to: "workloads",
  },
  {
    words: "kubectl",
    like: "command line arbor",
    text: "The command line of Arbor is arbor. kubectl is needed only to run Arbor on Kubernetes.",
    to: "cli",
  },
  {
    words: "mysql, mariadb, oracle, mongodb",
    like: "postgresql database engine",
    text: "Arbor stores its data in SQLite or PostgreSQL.",
    to: "scaling#engines",
  },
  {
    words: "graphql",
    like: "api protocols",
    text: "Arbor has no GraphQL. It serves gRPC, Connect and REST on one port.",
    to: "api-rules#protocols",
  },
];
