import assert from "node:assert/strict";
import { test } from "node:test";
import { parseGrpcTimeout } from "../../../src/transport/http/grpc-fields.js";

const rows: readonly { value: string; ms: number }[] = [
  { value: "1H", ms: 3_600_000 },
  { value: "2M", ms: 120_000 },
  { value: "5S", ms: 5_000 },
  { value: "250m", ms: 250 },
  { value: "1500u", ms: 1.5 },
  { value: "99999999n", ms: 99.999999 },
  { value: "0S", ms: 0 },
  { value: "99999999H", ms: 359_999_996_400_000 },
  ...["", "S", "5", "5s", "5 S", " 5S", "-5S", "+5S", "1.5S", "123456789S", "٣S", "5SS", "0x1S", "5h"].map((value) => ({
    value,
    ms: Number.NaN,
  })),
];

for (const { value, ms } of rows) {
  test(`grpc-timeout ${JSON.stringify(value)} is ${ms} ms`, () => assert.equal(parseGrpcTimeout(value), ms));
}
