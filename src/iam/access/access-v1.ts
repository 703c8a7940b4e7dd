// The handlers of AccessService: who may do what, where, and why (docs/access.md).
//
//   question.ts      what a request asks: the capabilities of a method of the table, or those that it names
//   holder.ts        an identity with the bindings that the caller sees; of itself, the caller has the rows of its token
//   answer.ts        the decision, by the function that authorizes calls (pipeline/auth), and the grants behind it
//   subjects.ts      who may: bindings merged by identity, then mappings, default roles and invites
//   access-list.ts   what an identity may do, and where
//   names.ts         search by the beginning of names
//   find.ts          search by uids, paths, words, addresses and more; find-query.ts parses the text, found.ts describes
//                    what was found
//   grants.ts        how answers show grants
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import type { PageTokens } from "../../kernel/page-token.js";
import { isUidp } from "../../kernel/uidp.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import type { Tx } from "../../store/transaction.js";
import { readAccessOf, readOwnAccess } from "./access-list.js";
import { answerQuestion, findSeenGroups } from "./answer.js";
import { type FindDeps, find } from "./find.js";
import { parseQuery } from "./find-query.js";
import { buildEndTime } from "./grants.js";
import { Lookups } from "./holder.js";
import { searchNames } from "./names.js";
import { parsePage } from "./paging.js";
import { type FindMethod, parseQuestion } from "./question.js";
import { readSubjects } from "./subjects.js";

export interface AccessDeps extends FindDeps {
  readonly tokens: PageTokens<Tx>;
  /** Finds a method of the table, which has this service as well. */
  readonly findMethod: FindMethod;
  /** The handler of TestClaims, which belongs to the exchange of tokens. */
  readonly testClaims: Handlers<typeof AccessService>["testClaims"];
}

const MAX_NAME = 1_000;

/** Creates AccessService. */
export function accessV1({ tokens, findMethod, testClaims, ...deps }: AccessDeps) {
  const handlers: Handlers<typeof AccessService> = {
    async check(request, call) {
      const { identity, resource } = request;
      const question = parseQuestion(request, findMethod);
      const answer = await answerQuestion(question, identity, resource, call);
      return {
        allowed: answer.allowed,
        missingCapabilities: answer.missing.map(({ name }) => name),
        methodRule: question.methodRule,
        partial: answer.isPartial(),
        unconfirmed: answer.unconfirmed,
        ...buildEndTime(answer),
      };
    },

    async explain(request, call) {
      const { identity, resource } = request;
      const question = parseQuestion(request, findMethod);
      const answer = await answerQuestion(question, identity, resource, call);
      const grants = await answer.explain();
      return {
        allowed: answer.allowed,
        neededCapabilities: question.capabilities.map(({ name }) => name),
        missingCapabilities: answer.missing.map(({ name }) => name),
        methodRule: question.methodRule,
        partial: answer.isPartial(),
        unconfirmed: answer.unconfirmed,
        ...buildEndTime(answer),
        grants,
      };
    },

    async listSubjects(request, call) {
      const { actions, resource } = request;
      if (resource === "") throw invalidArgument({ field: "resource", rule: "is required" });
      const question = parseQuestion(request, findMethod);
      if (question.capabilities.length === 0) {
        throw invalidArgument({ field: "actions", rule: "must need a capability: everybody may call this method" });
      }
      const { asker, groups, partial } = await findSeenGroups(resource, call);
      const page = await parsePage(request, [actions, resource], call, tokens);
      const lookups = new Lookups(call.tx, asker);
      const found = await readSubjects({ question, resource, groups, asker, lookups }, call, page);
      return {
        subjects: found.subjects,
        nextPageToken: page.tokenOf(found.next),
        partial: partial || lookups.hidRole,
        methodRule: question.methodRule,
      };
    },

    async listAccess(request, call) {
      const { identity, group } = request;
      requireUid("identity", identity);
      requireUid("group", group);
      const page = await parsePage(request, [identity, group], call, tokens);
      const isOwn = identity === "" || identity === call.caller.uid;
      const found = isOwn
        ? { ...(await readOwnAccess(group, call, page)), unconfirmed: false }
        : await readAccessOf(identity, group, call, page);
      return { grants: found.grants, nextPageToken: page.tokenOf(found.next), unconfirmed: found.unconfirmed };
    },

    testClaims,

    async searchNames(request, call) {
      const { prefix, kind, group } = request;
      requireUid("group", group);
      if (prefix === "") throw invalidArgument({ field: "prefix", rule: "is required" });
      if (prefix.length > MAX_NAME)
        throw invalidArgument({ field: "prefix", rule: `must be at most ${MAX_NAME} characters` });
      if (!isPrintable(prefix)) throw invalidArgument({ field: "prefix", rule: "must not contain control characters" });
      const page = await parsePage(request, [prefix, kind, group], call, tokens);
      const { resources, next } = await searchNames({ prefix, kind, group }, call, page);
      return { resources, nextPageToken: page.tokenOf(next) };
    },

    async find(request, call) {
      const query = parseQuery(request.query);
      const { kind } = request;
      const page = await parsePage(request, [request.query, kind], call, tokens);
      const { resources, next } = await find({ query, kind }, call, deps, page);
      return { resources, nextPageToken: page.tokenOf(next) };
    },
  };
  return serve(AccessService, handlers);
}

function requireUid(field: string, uid: string): void {
  if (uid !== "" && !isUidp(uid)) throw invalidArgument({ field, rule: "must be a uid, such as the service assigns" });
}
