// Patterns against what they stand for: comparison of numbers, and Node's parser of addresses.
import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";
import { IPV6, listPattern, measurePattern, NETWORK, numberPattern } from "../../src/config/patterns.js";
import { createRandom } from "../support/openapi/random.js";

const matcher = (pattern: string) => {
  const whole = new RegExp(`^(?:${pattern})$`, "u");
  return (text: string) => whole.test(text);
};

test("a range of numbers has those from its minimum to its maximum, and no other", () => {
  const random = createRandom(18);
  const drawn = Array.from({ length: 60 }, () => [random.int(1_200), random.int(1_200)].sort((a, b) => a - b));
  for (const [min = 0, max = 0] of [[0, 0], [0, 9], [9, 10], [99, 1_000], [0, 1_199], ...drawn]) {
    const isMatch = matcher(numberPattern(min, max));
    for (let number = 0; number < 1_300; number++) {
      assert.equal(isMatch(String(number)), number >= min && number <= max, `${number}: ${min} to ${max}`);
    }
    for (const wrong of ["", "-1", "1.5", "1e1", " 1", "1 ", "0x1", "٣"]) assert.ok(!isMatch(wrong), wrong);
    assert.ok(isMatch(`00${max}`));
  }
});

test("a measure has each unit in which a whole number is within the range", () => {
  const isMatch = matcher(measurePattern({ s: 1, m: 60, h: 3_600 }, 90, 3_599));
  const rows = { "89s": false, "90s": true, "3599s": true, "3600s": false, "1m": false, "2m": true, "59m": true };
  for (const [text, isWithin] of Object.entries({ ...rows, "60m": false, "0h": false, "1h": false, "90": false })) {
    assert.equal(isMatch(text), isWithin, text);
  }
});

test("a list has at least one item and at most as many as it may have, with commas between", () => {
  const isMatch = matcher(listPattern("a|bb", 3));
  for (const right of ["a", " a ", "a,bb", "a , bb,\ta"]) assert.ok(isMatch(right), right);
  for (const wrong of ["", ",", "a,", ",a", "a,,a", "a b", "b", "a,a,a,a"]) assert.ok(!isMatch(wrong), wrong);
});

test("addresses are those that Node takes for such", () => {
  const [isV6, isNetwork] = [matcher(IPV6), matcher(NETWORK)];
  const random = createRandom(6);
  const groups = ["0", "1", "ffff", "10000", "A0", "", "", "1.2.3.4", "g"];
  const octets = ["0", "1", "9", "99", "199", "249", "255", "256", "00", "01", ""];
  const known = ["::", "::1", "1::", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", ":::"];
  const found = { v6: 0, v4: 0 };
  for (let i = 0; i < 20_000; i++) {
    const six = known[i] ?? Array.from({ length: 2 + random.int(8) }, () => random.pick(groups)).join(":");
    const four = Array.from({ length: 3 + random.int(10) / 8 + 0.5 }, () => random.pick(octets)).join(".");
    assert.equal(isV6(six), isIP(six) === 6, six);
    assert.equal(isNetwork(six), isIP(six) === 6, six);
    assert.equal(isNetwork(four), isIP(four) === 4, four);
    found.v6 += Number(isV6(six));
    found.v4 += Number(isNetwork(four));
  }
  assert.ok(found.v6 > 100 && found.v4 > 100, JSON.stringify(found));
});
