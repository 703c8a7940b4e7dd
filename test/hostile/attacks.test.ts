// Attacks on a real process, one after the other, each with the good client
// beside it: nearly all of its calls are answered, nearly as fast as undisturbed,
// memory stays below its ceiling, and the process is the same at the end.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { tempDir } from "../support/temp-dir.js";
import { copyTlsFile } from "../support/tls-files.js";
import { type Arena, openArena, type Row } from "./support/arena.js";
import { HTTP_FORMS, readStatus } from "./support/http1.js";
import { startService } from "./support/service.js";

const rows: readonly Row[] = [
  { name: "HTTP/2.0 on an HTTP/1.1 connection", attacks: ["http-version-2"] },
  { name: "invalid bytes after a request", attacks: ["trailing-bytes"] },
  { name: "gzip bombs", attacks: ["gzip-bombs"] },
  { name: "tokens that are dear to refuse", attacks: ["costly-tokens"] },
  { name: "issuers of one tenant that are many, or never answer", attacks: ["foreign-issuers"] },
  { name: "bodies that never end", attacks: ["unfinished-bodies"] },
  { name: "thousands of watchers", attacks: ["watchers"] },
  { name: "answers that nobody reads", attacks: ["unread-responses"] },
  { name: "device logins that nobody finishes", attacks: ["device-requests"] },
  { name: "thousands of root groups of one person", attacks: ["many-roots"] },
  { name: "bodies in tiny pieces", attacks: ["body-pieces"] },
  { name: "requests ahead of their responses", attacks: ["pipelined-requests"] },
  { name: "a busy address", attacks: ["busy-address"] },
];

let arena: Arena;
before(async () => {
  arena = await openArena();
});
after(() => arena?.close());

for (const row of rows) {
  it(`serves others under attack: ${row.name}`, async () => {
    const { faults } = await arena.run(row);
    assert.deepEqual(faults, []);
  });
}

it("answers every version of HTTP/1 over TLS too, and lives", async () => {
  await arena.rest();
  const directory = tempDir();
  for (const name of ["cert.pem", "key.pem"]) copyTlsFile(name, join(directory, name));
  const files = ["--tls-cert", join(directory, "cert.pem"), "--tls-key", join(directory, "key.pem")];
  const service = await startService(tempDir(), ...files);
  try {
    for (const { name, text, status } of HTTP_FORMS) {
      assert.equal(await readStatus(service.url, text, "127.0.0.2"), status, name);
    }
    assert.ok(service.alive(), service.ending());
  } finally {
    await service.stop();
  }
});
