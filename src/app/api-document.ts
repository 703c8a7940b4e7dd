import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readComments } from "../codec/proto-comments.js";
import { runInSlices } from "../kernel/event-loop.js";
import type { HttpBinding } from "../transport/http/http-binding.js";
import { openApiDocument } from "../transport/openapi/document.js";

// The same path from `src` and from `dist`.
const IMAGE = fileURLToPath(new URL("../../gen/api.binpb", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../../package.json", import.meta.url));

/** The OpenAPI document of the routes served, as JSON. @param baseUrl where they are served */
export async function openApiJson(routes: readonly HttpBinding[], baseUrl: string): Promise<string> {
  const { version } = JSON.parse(readFileSync(PACKAGE, "utf8")) as { version: string };
  const description =
    "Organisations as a tree of groups, identities, roles and access. Every operation is a gRPC method too, on the same " +
    "host and port.";
  const info = { title: "Arbor", version, description, baseUrl };
  const comments = await runInSlices(readComments(readFileSync(IMAGE)));
  return JSON.stringify(await runInSlices(openApiDocument(routes, comments, info)));
}
