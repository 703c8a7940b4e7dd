// What a registry says of its content never becomes the path of a request: a server in place of the registry answers
// with indexes, tags and links that lead elsewhere, and records what it is asked.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, beforeEach, describe, it } from "node:test";
import { readImageConfig, readSizes } from "../../src/registry/images/image-manifest.js";
import { copyRepo, deleteCopied } from "../../src/registry/oci/copy-repo.js";
import { parseEvents } from "../../src/registry/oci/notification.js";
import { type Digest, isTagName, parseDigest, type TagName } from "../../src/registry/oci/reference.js";
import { createRegistryClient } from "../../src/registry/oci/registry-client.js";

const INDEX = "application/vnd.oci.image.index.v1+json";
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const HEX = "e".repeat(64);
const VICTIM = "victim/secret";

/** Texts in place of digests, which would lead a URL elsewhere or break the program. */
const TRICKS: readonly unknown[] = [
  `../../../${VICTIM}/manifests/latest`,
  `sha256:${HEX}/../../../../${VICTIM}/manifests/latest`,
  `sha256:${HEX}?x=1`,
  `sha256:${HEX}#x`,
  `sha256:${HEX}%2f..%2f..`,
  `sha256:${HEX}\n`,
  ` sha256:${HEX}`,
  `sha256:${"E".repeat(64)}`,
  `SHA256:${HEX}`,
  `sha256:${HEX.slice(1)}`,
  `sha512:${HEX}`,
  `md5:${"e".repeat(32)}`,
  "latest",
  "//evil.example/x",
  "",
  "__proto__",
  null,
  1,
  {},
  [`sha256:${HEX}`],
];

const digestOf = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}` as Digest;

/** Content by its path, and headers that come with it. */
const served = new Map<string, { readonly type: string; readonly body: string; readonly link?: string }>();
let asked: string[] = [];

const server = createServer((req, res) => {
  const path = req.url ?? "";
  asked.push(`${req.method} ${path}`);
  const found = served.get(path);
  if (found === undefined) {
    res.writeHead(404).end();
    return;
  }
  const { type, body, link } = found;
  const digest = digestOf(body);
  res.writeHead(200, { "content-type": type, "docker-content-digest": digest, ...(link && { link }) }).end(body);
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
after(() => server.close());
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const client = createRegistryClient({ url, token: () => "token" });

function serveManifest(path: string, type: string, manifest: object): Digest {
  const body = JSON.stringify(manifest);
  const digest = digestOf(body);
  for (const reference of [digest, "latest"]) served.set(`/v2/${path}/manifests/${reference}`, { type, body });
  return digest;
}

beforeEach(() => {
  served.clear();
  asked = [];
});

/** A real image among parts whose digests are tricks. */
function serveTricks(path: string): Digest {
  const config = JSON.stringify({ architecture: "arm64", config: { User: "root" } });
  served.set(`/v2/${path}/blobs/${digestOf(config)}`, { type: "application/octet-stream", body: config });
  const image = serveManifest(path, MANIFEST, { mediaType: MANIFEST, config: { digest: digestOf(config), size: 7 } });
  const tricky = { mediaType: MANIFEST, config: { digest: TRICKS[0], size: 1 }, layers: [{ digest: TRICKS[1] }] };
  const parts = TRICKS.map((digest) => ({ mediaType: MANIFEST, digest, platform: { architecture: "amd64" } }));
  return serveManifest(path, INDEX, {
    mediaType: INDEX,
    manifests: [
      { mediaType: MANIFEST, digest: image },
      { mediaType: MANIFEST, digest: serveManifest(path, MANIFEST, tricky) },
      ...parts,
    ],
  });
}

/** The paths of requests, but for those of this repo's content by its digest and of what is listed below. */
function others(...paths: readonly string[]): string[] {
  const own = new RegExp(`^[A-Z]+ /v2/(${paths.join("|")})/(manifests|blobs)/(sha256:[0-9a-f]{64}|latest)$`);
  return asked.filter((one) => !own.test(one));
}

describe("a digest that is none", () => {
  it("is no digest, wherever it comes from", () => {
    for (const trick of TRICKS) assert.equal(parseDigest(trick), undefined, String(trick));
    for (const [algorithm, length] of [["sha256", 64] as const, ["sha384", 96] as const, ["sha512", 128] as const]) {
      const digest = `${algorithm}:${"0".repeat(length)}`;
      assert.equal(parseDigest(digest), digest);
    }
  });

  it("of a part of an image is passed over, and the other images are read", async () => {
    const digest = serveTricks("acme/app");
    const content = await client.findManifest("acme/app", digest);
    assert.ok(content);
    const reader = {
      findManifest: (one: Digest) => client.findManifest("acme/app", one),
      findBlob: (one: Digest) => client.findBlob("acme/app", one),
    };
    assert.deepEqual(await readSizes(content, reader), { arm64: 7 });
    assert.equal((await readImageConfig(content, reader, "arm64"))?.user, "root");
    assert.deepEqual(others("acme/app"), []);
    assert.ok(asked.length >= 5, "the real parts were read");
  });

  it("of a part of an image that is moved makes it a broken one, and the others go on", async () => {
    const digest = serveTricks("uid/app");
    served.set("/v2/uid/app/tags/list", { type: "application/json", body: '{"tags":["latest"]}' });
    const broken: string[] = [];
    const counts = { tags: 0, manifests: 0, blobs: 0, broken: 0, deleted: 0, kept: 0 };
    const onBroken = (image: string, reason: string) => void broken.push(`${image}: ${reason}`);
    const deps = { registry: client, counts, onBroken, onProgress: () => {} };
    const move = { from: "uid/app", to: "acme/app", digests: [] };
    await copyRepo(move, deps);
    assert.deepEqual(broken, [`uid/app:latest: the manifest ${digest} has a part without a digest`]);
    await deleteCopied(move, deps);
    assert.equal(counts.deleted, 0);
    assert.deepEqual(others("uid/app", "acme/app"), ["GET /v2/uid/app/tags/list", "GET /v2/uid/app/tags/list"]);
  });

  it("of a notification is rejected with its field", () => {
    const event = (digest: unknown, action: string) => {
      const target = { repository: "acme/app", tag: "v1", mediaType: MANIFEST, digest };
      const one = { id: "1", timestamp: "2026-01-01T00:00:00Z", action, target };
      return parseEvents(Buffer.from(JSON.stringify({ events: [one] })));
    };
    assert.equal(event(`sha256:${HEX}`, "push")[0]?.digest, `sha256:${HEX}`);
    for (const trick of TRICKS) {
      assert.throws(() => event(trick, "push"), /events\[0\]\.target\.digest must be/, JSON.stringify(trick));
      if (trick !== "" && trick !== null) assert.throws(() => event(trick, "delete"), /target\.digest must be/);
    }
  });

  it("of a header counts as no content", async () => {
    const header = createServer((_, res) => res.writeHead(200, { "docker-content-digest": "../../x" }).end());
    await new Promise((resolve) => header.listen(0, "127.0.0.1", () => resolve(undefined)));
    try {
      const { port } = header.address() as AddressInfo;
      const other = createRegistryClient({ url: `http://127.0.0.1:${port}`, token: () => "token" });
      assert.equal(await other.findDigest("acme/app", "latest" as TagName), undefined);
    } finally {
      header.close();
    }
  });
});

it("tags that no tag may be called are not listed", async () => {
  const tags = ["latest", "../../victim/tags/list", "a/b", "", ".hidden", "-x", "v1?x", "x".repeat(129), "_ok.1-2"];
  served.set("/v2/acme/app/tags/list", { type: "application/json", body: JSON.stringify({ tags }) });
  assert.deepEqual(await client.listTags("acme/app"), ["latest", "_ok.1-2"]);
  assert.ok(isTagName("x".repeat(128)));
});

it("a link to the next page stays at the registry, whatever host it names", async () => {
  const away: string[] = [];
  const thief = createServer((req, res) => {
    away.push(String(req.headers.authorization));
    res.end('{"tags":[]}');
  });
  await new Promise((resolve) => thief.listen(0, "127.0.0.1", () => resolve(undefined)));
  const host = `127.0.0.1:${(thief.address() as AddressInfo).port}`;
  try {
    for (const target of [`http://${host}/page`, `//${host}/page`, `///${host}/page`, `http://x//${host}/page`]) {
      const body = '{"tags":["latest"]}';
      served.set("/v2/acme/app/tags/list", { type: "application/json", body, link: `<${target}>; rel="next"` });
      await client.listTags("acme/app");
    }
    assert.deepEqual(away, []);
    assert.equal(asked.length, 8, "the pages were asked for at the registry");
    asked = [];
    // With the origin in front these would be another port, another host, and no URL at all.
    for (const target of ["x:1/page", "x:.evil.example/page", "x:@evil.example/page", "http://"]) {
      served.set("/v2/acme/app/tags/list", {
        ...{ type: "application/json", body: '{"tags":["latest"]}' },
        link: `<${target}>; rel="next"`,
      });
      await assert.rejects(client.listTags("acme/app"), /answered with a link that is none/, target);
    }
    assert.equal(asked.length, 4, "the first pages alone");
  } finally {
    thief.close();
  }
});
