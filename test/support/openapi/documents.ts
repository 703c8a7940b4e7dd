// The documents that tests look at: of a service as it is, and of one that uses
// all that google.api.http offers.
import { readFileSync } from "node:fs";
import { type DescService, hasOption } from "@bufbuild/protobuf";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { type Comments, parseComments } from "../../../src/codec/proto-comments.js";
import { runSync } from "../../../src/kernel/time.js";
import { readAuthRule } from "../../../src/pipeline/method-table.js";
import { buildBindings, type HttpBinding } from "../../../src/transport/http/http-binding.js";
import { buildOpenApiDocument } from "../../../src/transport/openapi/document.js";
import { entryOf, featureService, streamEntryOf } from "../feature/feature.js";
import type { ApiDocument } from "./document.js";

const INFO = { title: "Arbor", version: "1.2.3", description: "For tests.", baseUrl: "https://api.example.org" };

/** Comments that say whose they are. */
export const commentWithName: Comments = (name) => `About ${name}. And more.`;

/** The document of routes, as a reader gets it. */
export function documentOf(routes: readonly HttpBinding[], comments: Comments, baseUrl = INFO.baseUrl): ApiDocument {
  return JSON.parse(
    JSON.stringify(runSync(buildOpenApiDocument(routes, comments, { ...INFO, baseUrl }))),
  ) as ApiDocument;
}

/** The routes of a service of the API. */
export function routesOf(service: DescService): HttpBinding[] {
  return service.methods.flatMap((desc) =>
    buildBindings({ ...entryOf(desc), auth: readAuthRule(desc, !hasOption(desc, iam)) }),
  );
}

/** The document of GroupsService, with the comments of its protos. */
export function groupsDocument(): ApiDocument {
  return documentOf(routesOf(GroupsService), protoComments());
}

/** The document of the services by which callers become known, with the comments of their protos. */
export function signInDocument(): ApiDocument {
  return documentOf([SecurityTokenService, Auth].flatMap(routesOf), protoComments());
}

/** The comments of the protos. */
export function protoComments(): Comments {
  return parseComments(readFileSync(new URL("../../../gen/api.binpb", import.meta.url)));
}

/** The routes of the services of feature.proto. */
export function featureRoutes(): HttpBinding[] {
  return [
    ...featureService("FeatureService").methods.map((desc) => entryOf(desc)),
    ...featureService("StreamService").methods.map((desc) => streamEntryOf(desc)),
  ].flatMap(buildBindings);
}

/** The document of those services. Feature.proto keeps no comments, so each tells what it is about. */
export function featureDocument(): ApiDocument {
  return documentOf(featureRoutes(), commentWithName);
}
