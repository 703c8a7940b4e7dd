// A process that fetches one URL by the guard, its host being 127.0.0.1, and writes what came of it. With a proxy the
// origin is not trusted, and no name may be resolved.
import { createGuardedFetch } from "../../src/outbound/guarded-fetch.js";

const [url = "", proxy] = process.argv.slice(2);
const reasons: string[] = [];
const fetch = createGuardedFetch({
  trustedOrigins: proxy === undefined ? [new URL(url).origin] : [],
  proxy,
  onFailure: (reason) => reasons.push(reason),
  resolve: () => {
    if (proxy !== undefined) reasons.push("a name was resolved");
    return Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
  },
});
const result = await fetch(url).then(
  ({ status, bytes }) => `${status} ${Buffer.from(bytes).toString()}`,
  (error: unknown) => String(error),
);
process.stdout.write(JSON.stringify({ result, reasons }));
