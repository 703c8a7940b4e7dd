// Runs one row over one protocol.
import assert from "node:assert/strict";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { DOMAIN } from "../expectations.js";
import { errorOf, findMethod, type RuleClient, type RuleResponse, sendRest } from "./clients.js";
import { assertMatch, fillPattern } from "./match.js";
import type { Expectation, Protocol, Rule, Step } from "./rule.js";
import type { RowWorld, RulesWorld } from "./world.js";

/** The HTTP status of each code (google.rpc.Code), written down once more. */
const STATUS: Readonly<Record<string, number>> = {
  OK: 200,
  CANCELLED: 499,
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  RESOURCE_EXHAUSTED: 429,
  UNIMPLEMENTED: 501,
};

const PROTOCOLS: readonly Protocol[] = ["REST", "gRPC", "Connect"];

/** The steps of a row; none where another test shows it. */
export function stepsOf(rule: Rule): readonly Step[] {
  if ("shownBy" in rule) return [];
  return "steps" in rule ? rule.steps : [rule];
}

/** The protocols that a row is run over. */
export function protocolsOf(rule: Rule): readonly Protocol[] {
  return rule.over ?? (stepsOf(rule).some((step) => "http" in step) ? ["REST"] : PROTOCOLS);
}

/**
 * Runs all steps of a row over one protocol.
 *
 * @throws AssertionError when a response is not as the row says
 */
export async function runRule(rule: Rule, client: RuleClient, world: RulesWorld): Promise<void> {
  const row = world.newRow();
  let skewMs = 0;
  try {
    for (const [i, step] of stepsOf(rule).entries()) {
      skewMs += step.laterMs ?? 0;
      world.setSkew(skewMs);
      await row.prepare(
        JSON.stringify([step, step.as], (_, value) => (value instanceof RegExp ? value.source : value)),
      );
      const response = await send(step, client, row, world.url);
      const expected = fillPattern(step.expect, row.fill);
      const where = `${client.name}, step ${i + 1}`;
      assertResponse(response, expected, where);
      if (expected.audit) {
        const { type, subjectUid } = (await world.newestAuditRow()) ?? {};
        assert.deepEqual({ eventType: type, resource: subjectUid }, expected.audit, where);
      }
      for (const [name, path] of Object.entries(step.keep ?? {})) {
        const value = valueAt(response.code === "OK" ? response.result : null, path);
        assert.equal(typeof value, "string", `${where}: nothing to keep at ${path}`);
        row.keep(name, String(value));
      }
    }
  } finally {
    world.setSkew(0);
  }
}

async function send(step: Step, client: RuleClient, row: RowWorld, url: string): Promise<RuleResponse> {
  const token = await row.tokenOf(step.as ?? "owner");
  const fill = <T>(value: T) => fillPattern(value, row.fill);
  if ("call" in step) {
    const method = findMethod(step.call);
    return client.call(method, fromJson(method.input, fill(step.request) as JsonValue), token);
  }
  const http = await sendRest(url, fill(step.http), { body: fill(step.body), token, headers: fill(step.headers) });
  const isError = http.status >= 400 && typeof http.json === "object" && http.json !== null && "code" in http.json;
  if (isError) return errorOf(http);
  return { code: http.status < 400 ? "OK" : "none", message: "", details: [], result: http.json, http };
}

function assertResponse(response: RuleResponse, expected: Expectation, where: string): void {
  const { code = "OK", message, details, result, json, text, headers, status = STATUS[code] } = expected;
  assert.equal(
    response.code,
    code,
    `${where}: ${response.code} ${response.message} ${JSON.stringify(response.result)}`,
  );
  if (message !== undefined) assertMatch(response.message, message, `${where}: message`);
  if (code !== "OK") {
    const [info, ...others] = response.details;
    assertMatch(
      info,
      { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: code, domain: DOMAIN },
      `${where}: details[0]`,
    );
    if (details !== undefined) assertMatch(others, details, `${where}: further details`);
  }
  if (result !== undefined) assertMatch(response.result, result, `${where}: result`);
  if (response.http === undefined) return;
  assert.equal(response.http.status, status, `${where}: HTTP status`);
  if (json !== undefined) assertMatch(response.http.json, json, `${where}: JSON`);
  if (text !== undefined) assertMatch(response.http.text, text, `${where}: body`);
  for (const [name, value] of Object.entries(headers ?? {}))
    assertMatch(response.http.headers.get(name), value, `${where}: ${name}`);
}

function valueAt(value: unknown, path: string): unknown {
  return path.split(".").reduce((at, key) => (at as Record<string, unknown> | null | undefined)?.[key], value);
}
