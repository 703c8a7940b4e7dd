// Random messages of random types, written and read by this service and by protobuf-es. A run prints its seed. What is
// read or written deliberately otherwise has its rows in json-differences.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type DescMessage,
  fromBinary,
  fromJsonString,
  type JsonObject,
  type JsonValue,
  type Message,
  type Registry,
  ScalarType,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { encodeFrame } from "../../src/codec/frame-writer.js";
import { createJsonWriters } from "../../src/codec/json-writer.js";
import { ApiError } from "../../src/kernel/errors.js";
import { createBodyReader } from "../../src/transport/rest/decode.js";
import { createRandom, type Random } from "../support/openapi/random.js";
import { chooseScale } from "../support/scale.js";
import { randomTypes } from "./differential/descriptors.js";
import { MessageMaker } from "./differential/messages.js";
import { Speller } from "./differential/spellings.js";

const SEED = Number(process.env.TEST_ARBOR_JSON_SEED ?? 20_261_123);
const MESSAGES = chooseScale(120_000, 1_000);
const PER_TYPES = 50;

interface Sample {
  readonly random: Random;
  readonly registry: Registry;
  readonly desc: DescMessage;
  readonly message: Message;
}

// Each message with a source of chance of its own, so that a failure is repeated by its seed alone.
function forEachMessage(name: string, seed: number, check: (sample: Sample) => void): void {
  let done = 0;
  for (let set = 0; done < MESSAGES; set++) {
    const random = createRandom(seed + set);
    const { registry, messages } = randomTypes(random);
    const maker = new MessageMaker(random, messages, registry);
    for (let i = 0; i < PER_TYPES; i++, done++) {
      const desc = random.pick(messages);
      const message = maker.message(desc);
      try {
        check({ random, registry, desc, message });
      } catch (error) {
        const { message: reason, stack } = error as Error;
        throw new Error(`${name}: message ${i} of the types of seed ${seed + set}: ${reason}\n${stack}`);
      }
    }
  }
  console.log(`${name}: ${done} messages, seed ${seed}`);
}

test("what is written as JSON is what protobuf-es writes", () => {
  forEachMessage("JSON writer", SEED, ({ registry, desc, message }) => {
    const writers = createJsonWriters(registry, "exact");
    const sparse = toJson(desc, message, { registry });
    const response = asResponse(desc, toJson(desc, message, { registry, alwaysEmitImplicit: true }), registry);
    for (const given of [message, asInit(message)]) {
      assert.deepEqual(parse(writers.details.writerOf(desc)(given)), plain(sparse));
      assert.deepEqual(parse(writers.answer(desc)(given)), plain(response));
    }
  });
});

test("what is written as a frame is what protobuf-es writes", () => {
  forEachMessage("frame writer", SEED + 1e6, ({ desc, message }) => {
    const expected = Buffer.from(toBinary(desc, message));
    for (const given of [message, asInit(message)]) assert.deepEqual(encodeFrame(desc, given).subarray(5), expected);
  });
});

test("JSON in any spelling is read as protobuf-es reads it, or by neither", () => {
  const counts = { read: 0, rejected: 0 };
  forEachMessage("JSON reader", SEED + 2e6, ({ random, registry, desc, message }) => {
    const json = toJson(desc, message, { registry });
    const strict = random.chance(0.5);
    const withUnknown = random.chance(strict ? 0.1 : 0.5);
    // Where protobuf-es passes over unknown fields, it also passes over unknown names of enums; this service never does.
    const wrong = random.chance(0.5) ? 0.1 : 0;
    const speller = new Speller(random, registry, { withUnknown, wrong, wrongNames: strict });
    const text = speller.message(desc, json);
    const expected = attempt(() => fromJsonString(desc, text, { registry, ignoreUnknownFields: !strict }));
    const actual = attempt(() => createBodyReader(desc, "all", registry, strict)(text).message);
    assert.equal(actual === undefined, expected === undefined, text);
    if (expected !== undefined && actual !== undefined) {
      const bytes = attempt(() => toBinary(desc, expected));
      // Undefined where the text lacks what proto2 requires.
      assert.deepEqual(
        attempt(() => toBinary(desc, actual)),
        bytes,
        text,
      );
    }
    if (expected === undefined) counts.rejected++;
    else counts.read++;
  });
  console.log(`JSON reader: ${counts.read} read, ${counts.rejected} rejected by both`);
  assert.ok(counts.read > MESSAGES / 3 && counts.rejected > MESSAGES / 20);
});

test("what this service writes, it and protobuf-es read back", () => {
  forEachMessage("round trip", SEED + 3e6, ({ registry, desc, message }) => {
    const text = createJsonWriters(registry, "exact").answer(desc)(message);
    const bytes = toBinary(desc, message);
    assert.deepEqual(toBinary(desc, createBodyReader(desc, "all", registry, true)(text).message), bytes, text);
    assert.deepEqual(toBinary(desc, fromJsonString(desc, text, { registry })), bytes, text);
    assert.deepEqual(toBinary(desc, fromBinary(desc, bytes)), bytes);
  });
});

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    // A TypeError is a defect of the reader.
    if (error instanceof ApiError || !(error instanceof TypeError)) return undefined;
    throw error;
  }
}

// Without minus zero, which JSON.stringify cannot write.
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function parse(text: string): unknown {
  return plain(JSON.parse(text));
}

// What a handler may answer instead of a message.
function asInit(value: Message): object {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== "$typeName" && name !== "$unknown")
      .map(([name, one]) => [name, isMessage(one) ? asInit(one) : one]),
  );
}

function isMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && "$typeName" in value;
}

const { IMPLICIT } = FeatureSet_FieldPresence;

// What protobuf-es prints with all that is empty, without what a response leaves out.
function asResponse(desc: DescMessage, json: JsonValue, registry: Registry): JsonValue {
  if (typeof json !== "object" || json === null) return json;
  if (desc.typeName === "google.protobuf.Any") {
    const type = (json as JsonObject)["@type"];
    const packed = typeof type === "string" ? registry.getMessage(type.slice(type.lastIndexOf("/") + 1)) : undefined;
    if (packed === undefined) return json;
    if (!hasCustomJsonRepresentation(packed)) return asResponse(packed, json, registry);
    asResponse(packed, (json as JsonObject).value as JsonValue, registry);
    return json;
  }
  if (hasCustomJsonRepresentation(desc)) return json;
  const response = json as JsonObject;
  for (const field of desc.fields) {
    const { jsonName, message, presence } = field;
    const value = Object.hasOwn(response, jsonName) ? response[jsonName] : undefined;
    if (value === undefined) continue;
    const isNothing = field.fieldKind === "enum" && /(UNSPECIFIED|UNKNOWN)$/.test(String(value));
    const isNoToken = field.name === "next_page_token" && value === "" && field.scalar === ScalarType.STRING;
    if (presence === IMPLICIT && (isNothing || isNoToken)) delete response[jsonName];
    else if (message !== undefined && field.fieldKind === "message") asResponse(message, value, registry);
    else if (message !== undefined)
      for (const one of Object.values(value as JsonObject)) asResponse(message, one, registry);
  }
  return response;
}
