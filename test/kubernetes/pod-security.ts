// The Pod Security Standard "restricted", with the rows of "baseline" that it contains, as tables with a pod that breaks
// each row.

/** The fields of a pod that the standard is about. */
export type PodSpec = Record<string, unknown> & { containers: Container[]; securityContext?: SecurityContext };

type Container = Record<string, unknown> & { securityContext?: SecurityContext };

interface SecurityContext extends Record<string, unknown> {
  seccompProfile?: { type?: string };
  seLinuxOptions?: Record<string, unknown>;
  capabilities?: { add?: string[]; drop?: string[] };
}

/** A row of the standard. */
export interface SecurityRule {
  readonly name: string;
  readonly level: "baseline" | "restricted";
  isKept(pod: PodSpec): boolean;
  /** Changes a pod so that it breaks this row and no other. */
  breakIn(pod: PodSpec): unknown;
}

const RESTRICTED_VOLUMES = [
  ...["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"],
];
const SELINUX_TYPES = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/** All rows. */
export const securityRules: readonly SecurityRule[] = [
  {
    ...{ name: "HostProcess", level: "baseline" },
    isKept: (pod) => contextsOf(pod).every(({ windowsOptions }) => field(windowsOptions, "hostProcess") !== true),
    breakIn: (pod) => Object.assign(first(pod), { windowsOptions: { hostProcess: true } }),
  },
  {
    ...{ name: "Host Namespaces", level: "baseline" },
    isKept: (pod) => !["hostNetwork", "hostPID", "hostIPC"].some((name) => pod[name] === true),
    breakIn: (pod) => Object.assign(pod, { hostPID: true }),
  },
  {
    ...{ name: "Privileged Containers", level: "baseline" },
    isKept: (pod) => containerContextsOf(pod).every(({ privileged }) => privileged !== true),
    breakIn: (pod) => Object.assign(first(pod), { privileged: true }),
  },
  {
    ...{ name: "HostPath Volumes", level: "baseline" },
    isKept: (pod) => !volumesOf(pod).some((volume) => "hostPath" in volume),
    breakIn: (pod) => volumesOf(pod).push({ name: "host", emptyDir: {}, hostPath: { path: "/" } }),
  },
  {
    ...{ name: "Host Ports", level: "baseline" },
    isKept: (pod) => containersOf(pod).every(({ ports }) => list(ports).every(({ hostPort }) => !hostPort)),
    breakIn: (pod) => Object.assign(pod.containers[0] ?? {}, { ports: [{ containerPort: 1, hostPort: 1 }] }),
  },
  {
    ...{ name: "Host Probes and Lifecycle Hooks", level: "baseline" },
    isKept: (pod) => containersOf(pod).every((container) => !hookHosts(container).some((host) => host)),
    breakIn: (pod) =>
      Object.assign(pod.containers[0] ?? {}, { livenessProbe: { httpGet: { port: 1, host: "10.0.0.1" } } }),
  },
  {
    ...{ name: "AppArmor", level: "baseline" },
    isKept: (pod) => contextsOf(pod).every(({ appArmorProfile }) => field(appArmorProfile, "type") !== "Unconfined"),
    breakIn: (pod) => Object.assign(first(pod), { appArmorProfile: { type: "Unconfined" } }),
  },
  {
    ...{ name: "SELinux", level: "baseline" },
    isKept: (pod) =>
      contextsOf(pod).every(({ seLinuxOptions: { type = "", user, role } = {} }) => {
        return SELINUX_TYPES.includes(type as string) && !user && !role;
      }),
    breakIn: (pod) => Object.assign(first(pod), { seLinuxOptions: { user: "system_u" } }),
  },
  {
    ...{ name: "/proc Mount Type", level: "baseline" },
    isKept: (pod) => containerContextsOf(pod).every(({ procMount = "Default" }) => procMount === "Default"),
    breakIn: (pod) => Object.assign(first(pod), { procMount: "Unmasked" }),
  },
  {
    ...{ name: "Sysctls", level: "baseline" },
    isKept: (pod) => list(pod.securityContext?.sysctls).length === 0,
    breakIn: (pod) =>
      Object.assign(pod, { securityContext: { ...pod.securityContext, sysctls: [{ name: "kernel.msgmax" }] } }),
  },
  {
    ...{ name: "Volume Types", level: "restricted" },
    isKept: (pod) => volumesOf(pod).every((volume) => RESTRICTED_VOLUMES.some((type) => type in volume)),
    breakIn: (pod) => volumesOf(pod).push({ name: "share", nfs: { server: "a", path: "/" } }),
  },
  {
    ...{ name: "Privilege Escalation", level: "restricted" },
    isKept: (pod) => containerContextsOf(pod).every((context) => context.allowPrivilegeEscalation === false),
    breakIn: (pod) => delete first(pod).allowPrivilegeEscalation,
  },
  {
    ...{ name: "Running as Non-root", level: "restricted" },
    isKept: (pod) => effective(pod, "runAsNonRoot").every((value) => value === true),
    breakIn: (pod) => Object.assign(first(pod), { runAsNonRoot: false }),
  },
  {
    ...{ name: "Running as Non-root user", level: "restricted" },
    isKept: (pod) => contextsOf(pod).every(({ runAsUser }) => runAsUser !== 0),
    breakIn: (pod) => Object.assign(first(pod), { runAsUser: 0 }),
  },
  {
    ...{ name: "Seccomp", level: "restricted" },
    isKept: (pod) =>
      effective(pod, "seccompProfile").every((profile) =>
        ["RuntimeDefault", "Localhost"].includes(field(profile, "type") as string),
      ),
    breakIn: (pod) => delete pod.securityContext?.seccompProfile,
  },
  {
    ...{ name: "Capabilities", level: "restricted" },
    isKept: (pod) =>
      containerContextsOf(pod).every(({ capabilities: { add = [], drop = [] } = {} }) => {
        return drop.includes("ALL") && add.every((capability) => capability === "NET_BIND_SERVICE");
      }),
    breakIn: (pod) => Object.assign(first(pod), { capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] } }),
  },
];

/** The names of the rows that a pod breaks. */
export function findBrokenRules(pod: PodSpec): string[] {
  return securityRules.filter((rule) => !rule.isKept(pod)).map(({ name }) => name);
}

/** All containers of a pod. */
export function containersOf(pod: PodSpec): Container[] {
  return [...pod.containers, ...list(pod.initContainers), ...list(pod.ephemeralContainers)];
}

function containerContextsOf(pod: PodSpec): SecurityContext[] {
  return containersOf(pod).map(({ securityContext = {} }) => securityContext);
}

function contextsOf(pod: PodSpec): SecurityContext[] {
  return [pod.securityContext ?? {}, ...containerContextsOf(pod)];
}

// What applies to each container: its own value, otherwise that of the pod.
function effective(pod: PodSpec, name: string): unknown[] {
  return containerContextsOf(pod).map((context) => context[name] ?? pod.securityContext?.[name]);
}

function hookHosts({ livenessProbe, readinessProbe, startupProbe, lifecycle }: Container): unknown[] {
  const hooks = [
    livenessProbe,
    readinessProbe,
    startupProbe,
    field(lifecycle, "preStop"),
    field(lifecycle, "postStart"),
  ];
  return hooks.flatMap((hook) => ["httpGet", "tcpSocket"].map((action) => field(field(hook, action), "host")));
}

function volumesOf(pod: PodSpec): Record<string, unknown>[] {
  return list(pod.volumes);
}

function first(pod: PodSpec): SecurityContext {
  const [container] = pod.containers;
  if (container?.securityContext === undefined) throw new Error("the first container has no security context");
  return container.securityContext;
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function list(value: unknown): Record<string, unknown>[] {
  return (value ?? []) as Record<string, unknown>[];
}
