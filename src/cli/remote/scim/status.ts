// `arbor scim status`.
import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { GetScimStatusRequestSchema, ScimService } from "#gen/arbor/scim/v1/scim_pb.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { formatResponse } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { type CommonFlags, isTable } from "../flags.js";
import { withSession } from "../session.js";

/** Prints the state of a directory. */
export async function printStatus(provider: string, { output: format, ...flags }: CommonFlags): Promise<void> {
  await withSession({ ...flags, output: format }, async ({ call, names, output }) => {
    const identityProvider = await names.find(["identity provider"], provider);
    const request = create(GetScimStatusRequestSchema, { identityProvider });
    const status = await call(ScimService.method.getScimStatus, request);
    const text = isTable(format) ? describeStatus(status) : formatResponse(format, status, () => [], output.terminal);
    await output.write(text);
  });
}

const states: Readonly<Record<string, string>> = {
  CREDENTIAL_STATE_NOT_ISSUED: "none was generated",
  CREDENTIAL_STATE_LIVE: "valid",
  CREDENTIAL_STATE_EXPIRED: "expired",
  CREDENTIAL_STATE_REVOKED: "revoked",
  CREDENTIAL_STATE_ROTATING: "valid, and so is the former one",
};

/** Describes a response for people. */
export function describeStatus(status: JsonObject): string {
  const { people = 0, inactivePeople = 0, linkedPeople = 0, groups = 0 } = status;
  const scim: JsonObject = isJsonObject(status.scim) ? (status.scim as JsonObject) : {};
  const { enabled = false, endpointUrl = "", credentialState = "", tokenExpireTime, previousTokenExpireTime } = scim;
  const lines = [
    `SCIM            ${enabled === true ? "enabled" : "disabled"}`,
    `endpoint        ${endpointUrl}`,
    `token           ${states[String(credentialState)] ?? credentialState}${formatEnd(credentialState, tokenExpireTime)}`,
    ...(previousTokenExpireTime === undefined ? [] : [`former token    until ${previousTokenExpireTime}`]),
    `people          ${people}: ${Number(people) - Number(inactivePeople)} active, ${inactivePeople} inactive; ${linkedPeople} have logged in`,
    `groups          ${groups}`,
    ...describePeople(
      "of whom a change is rejected, because an organisation would have no owner left: bind another owner",
      status.rejected,
      status.rejectedPeople,
      ({ userName, externalId, rejectTime }) =>
        `${userName}${externalId ? ` (${externalId})` : ""} since ${rejectTime}`,
    ),
    ...describeList(
      "thing to do, which goes on by itself",
      "things to do, which go on by themselves",
      status.work,
      status.workCount,
      ({ kind, uid, name, fullQuota }) =>
        `${works[String(kind)] ?? kind} ${name || uid}${fullQuota ? `: the quota ${fullQuota} is full` : ""}`,
    ),
    ...describePeople(
      "who have logged in, and whom the directory has not sent: they keep what they are bound to",
      status.unlinked,
      status.unlinkedPeople,
      ({ identity, name, email }) => [identity, name, email].filter(Boolean).join(" "),
    ),
  ];
  return lines.map((line) => `${escapeControls(line)}\n`).join("");
}

function formatEnd(state: JsonValue, time: JsonValue | undefined): string {
  if (state === "CREDENTIAL_STATE_NOT_ISSUED") return "";
  if (time === undefined) return ", never expires";
  return /LIVE|ROTATING/.test(String(state)) ? ` until ${time}` : ` since ${time}`;
}

const works: Readonly<Record<string, string>> = {
  SCIM_WORK_KIND_GROUP: "role bindings of the members of",
  SCIM_WORK_KIND_PERSON: "role bindings of",
  SCIM_WORK_KIND_MEMBERS: "former members of",
};

function describePeople(title: string, ...rest: Listed): string[] {
  return describeList(`person ${title}`, `people ${title}`, ...rest);
}

type Listed = readonly [
  listed: JsonValue | undefined,
  total: JsonValue | undefined,
  describe: (one: JsonObject) => string,
];

function describeList(singular: string, plural: string, ...[listed, total, describe]: Listed): string[] {
  const shown = (Array.isArray(listed) ? listed : []) as readonly JsonObject[];
  const count = Number(total ?? shown.length);
  if (count === 0) return [];
  const more = count > shown.length ? [`  and ${count - shown.length} more`] : [];
  return [
    "",
    `${count === 1 ? `1 ${singular}` : `${count} ${plural}`}:`,
    ...shown.map((one) => `  ${describe(one)}`),
    ...more,
  ];
}
