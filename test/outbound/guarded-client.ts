// A process that fetches one URL by the guard, its host being 127.0.0.1, and writes what came of it.
import { createGuardedFetch } from "../../src/outbound/guarded-fetch.js";

const url = process.argv[2] ?? "";
const reasons: string[] = [];
const fetch = createGuardedFetch({
  trustedOrigins: [new URL(url).origin],
  onFailure: (reason) => reasons.push(reason),
  resolve: () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]),
});
const result = await fetch(url).then(
  ({ status, bytes }) => `${status} ${Buffer.from(bytes).toString()}`,
  (error: unknown) => String(error),
);
process.stdout.write(JSON.stringify({ result, reasons }));
