// What paths name, whatever their parameters are called in a version.
import type { PlacedOperation } from "./document.js";
import { collectionOf, isCreate } from "./request.js";

/**
 * What the first parameter of a path names: a collection, of which it is a thing, or one of these words.
 * `organisation` is a root group, `image` a repo with an image and not copied from another, `deployed`
 * a repo with a deployment, and `bare` one without an overlay.
 */
export type Subject = string;

// Where what is created lies, where that is not any group.
const PARENTS: Readonly<Record<string, Subject>> = {
  identityProviders: "organisation",
  // So that they can be bound everywhere.
  identities: "organisation",
  externalGroupRoleMappings: "identityProviders",
  tags: "repos",
  overlayBindings: "bare",
  // Those who accept terms are organisations, and have no parent resource.
  terms: "organisation",
};

// Where it does not follow from the collection.
const SUBJECTS: readonly (readonly [of: RegExp, subject: Subject])[] = [
  [/^POST .*\/\{\w+\}\/deployment$/, "repos"],
  [/\/deployment$/, "deployed"],
  [/\/digests?\/|\/(?:repocountbysource|repotagssummary|digestcount)\/|\/readme$/, "image"],
  [/:requestGroupAccess$|\/(?:terms|settings)\//, "organisation"],
  [/\/rolebindings\/batch\//, "groups"],
  [/\/temporaryBindings\/\{\w+\}:setEnd$/, "roleBindings"],
];

// What else makes things than a request that names their parent in the path, see isCreate.
const MAKERS: readonly (readonly [of: RegExp, subject: Subject])[] = [
  [/\/deployment$/, "deployed"],
  [/\/advisories$/, "advisories"],
  [/\/advisories\/\{\w+\}\/events$/, "advisoryEvents"],
];

/** Of what the response of an operation is a new thing, by its `uid` or `id`; undefined for one that makes none. */
export function subjectCreatedBy(operation: PlacedOperation): Subject | undefined {
  if (isCreate(operation)) return collectionOf(operation);
  if (operation.method !== "POST") return undefined;
  return MAKERS.find(([of]) => of.test(operation.path))?.[1];
}

/** Tells it; undefined where nothing is named by its uid. */
export function subjectOf(operation: PlacedOperation): Subject | undefined {
  // Packages and projects have names and no uids.
  if (!operation.path.includes("{") || /\{(?:package|name)\}/.test(operation.path)) return undefined;
  const collection = collectionOf(operation);
  if (isCreate(operation)) return parentsOf(collection);
  const request = `${operation.method} ${operation.path}`;
  return SUBJECTS.find(([of]) => of.test(request))?.[1] ?? collection;
}

/** What the things of a collection lie in. */
export function parentsOf(collection: string): Subject {
  return PARENTS[collection] ?? "groups";
}
