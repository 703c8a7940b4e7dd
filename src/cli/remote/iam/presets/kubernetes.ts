// Kubernetes: pods of one service account. The namespace and the account are in the subject and in nested claims as well; an
// account that is deleted and created again has another uid.
import { invalidFlag } from "../../../errors.js";
import { equals, type Preset, type PresetValues, readText, textOf } from "./preset.js";

const LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?";
const NAMESPACE = new RegExp(`^${LABEL}$`);
const ACCOUNT = new RegExp(`^${LABEL}(\\.${LABEL})*$`);

export const kubernetes: Preset = {
  title: "Kubernetes",
  chosenBy: "kubernetes-issuer",
  requires: ["namespace", "service-account"],
  takes: ["service-account-id"],
  findTrust(given) {
    const issuer = readIssuer(given);
    const namespace = readText(given, "namespace", NAMESPACE, "must be a namespace, such as ci");
    const account = readText(given, "service-account", ACCOUNT, "must be a service account, such as builder");
    const uid = textOf(given, "service-account-id");
    return {
      issuer,
      subject: { case: "subject", value: `system:serviceaccount:${namespace}:${account}` },
      conditions: [
        equals(["kubernetes.io", "namespace"], namespace),
        equals(["kubernetes.io", "serviceaccount", "name"], account),
        ...(uid !== undefined ? [equals(["kubernetes.io", "serviceaccount", "uid"], uid)] : []),
      ],
      accepted: [
        `tokens of the service account ${account}${uid === undefined ? "" : ` (uid ${uid})`}`,
        `in the namespace ${namespace} of the cluster ${issuer}`,
      ].join(" "),
      name: `${namespace}-${account}`,
    };
  },
};

function readIssuer(given: PresetValues): string {
  const issuer = textOf(given, "kubernetes-issuer") ?? "";
  if (!URL.canParse(issuer))
    throw invalidFlag("--kubernetes-issuer", "must be the URL that the cluster's tokens have as `iss`");
  return issuer;
}
