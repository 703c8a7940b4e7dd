import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FeatureServer, type Sent, startDefault } from "./feature-server.js";

/** A request and what must come back. */
export interface ExchangeRow extends Sent {
  readonly status: number;
  readonly text?: string;
  /** Response headers; undefined for one that must not be there. */
  readonly has?: Readonly<Record<string, string | undefined>>;
  readonly reason: string;
}

/** One test per row and protocol, against a server of {@link startDefault}. */
export function testExchanges(rows: readonly ExchangeRow[]): void {
  let server: FeatureServer;
  before(async () => {
    server = await startDefault();
  });
  after(() => server.stop());
  for (const protocol of ["h1", "h2"] as const) {
    for (const { method = "GET", status, text, has = {}, reason, ...sent } of rows) {
      test(`${protocol}: ${method} ${sent.path.slice(0, 80)}: ${reason}`, async () => {
        const got = await server.send(protocol, { method, ...sent });
        assert.deepEqual({ status: got.status, text: text === undefined ? undefined : got.text }, { status, text });
        for (const [name, value] of Object.entries(has)) assert.equal(got.headers[name], value, name);
        if (method !== "HEAD" && status !== 204) assert.equal(got.headers["content-length"], String(got.bytes.length));
      });
    }
  }
}
