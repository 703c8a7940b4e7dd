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
  const { people = 0, inactivePeople = 0, linkedPeople = 0 } = status;
  const scim: JsonObject = isJsonObject(status.scim) ? (status.scim as JsonObject) : {};
  const { enabled = false, endpointUrl = "", credentialState = "", tokenExpireTime, previousTokenExpireTime } = scim;
  const lines = [
    `SCIM            ${enabled === true ? "enabled" : "disabled"}`,
    `endpoint        ${endpointUrl}`,
    `token           ${states[String(credentialState)] ?? credentialState}${formatEnd(credentialState, tokenExpireTime)}`,
    ...(previousTokenExpireTime === undefined ? [] : [`former token    until ${previousTokenExpireTime}`]),
    `people          ${people}: ${Number(people) - Number(inactivePeople)} active, ${inactivePeople} inactive; ${linkedPeople} have logged in`,
    ...describePeople(
      "of whom a change is rejected, because an organisation would have no owner left: bind another owner",
      status.rejected,
      status.rejectedPeople,
      ({ userName, externalId, rejectTime }) =>
        `${userName}${externalId ? ` (${externalId})` : ""} since ${rejectTime}`,
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

function describePeople(
  title: string,
  listed: JsonValue | undefined,
  total: JsonValue | undefined,
  describe: (one: JsonObject) => string,
): string[] {
  const people = (Array.isArray(listed) ? listed : []) as readonly JsonObject[];
  const count = Number(total ?? people.length);
  if (count === 0) return [];
  const more = count > people.length ? [`  and ${count - people.length} more`] : [];
  return [
    "",
    `${count === 1 ? "1 person" : `${count} people`} ${title}:`,
    ...people.map((one) => `  ${describe(one)}`),
    ...more,
  ];
}
