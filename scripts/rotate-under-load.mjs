// Checks that key rotation causes no failures: neither for clients with tokens of
// any age, over REST and gRPC, nor for other services that verify tokens with public
// keys which they cache for as long as they may:
//
//   node scripts/rotate-under-load.mjs [--seconds N] [--rotation S] [--max-age S] [--control]
//
// With --control new keys are used at once. Then some tokens must be rejected;
// otherwise the run cannot find any.
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "120" },
    rotation: { type: "string", default: "5" },
    "max-age": { type: "string", default: "2" },
    control: { type: "boolean", default: false },
  },
});
const [seconds, rotationS, maxAgeS] = [values.seconds, values.rotation, values["max-age"]].map(Number);
if (![seconds, rotationS, maxAgeS].every((value) => Number.isInteger(value) && value > 0)) {
  console.error("rotate-under-load: --seconds, --rotation and --max-age must be whole numbers above 0");
  process.exit(2);
}
register();
const { runRotation } = await import("../test/issuer/keys/rotation-run.ts");
const result = await runRotation({ seconds, rotationS, maxAgeS, control: values.control });
const { keys, rest, grpc, elsewhere, oldestS, rejected, problems } = result;
for (const problem of new Set(problems)) console.error(`rotate-under-load: ${problem}`);
console.log(`${seconds} s, ${keys} keys signed, tokens up to ${oldestS} s old`);
console.log(`accepted: ${rest} over REST, ${grpc} over gRPC, ${elsewhere} elsewhere`);
console.log(`rejected: ${rejected}`);
if (values.control && rejected === 0)
  console.error("rotate-under-load: the control rejected no token, so the run proves nothing");
const asExpected = values.control ? rejected > 0 : rejected === 0 && keys > seconds / rotationS / 2;
process.exit(asExpected && problems.length === 0 ? 0 : 1);
