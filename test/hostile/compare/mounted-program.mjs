// A program that serves Arbor together with a service of its own, whose methods end in every way there is. It is copied
// beside the package under test and what it imports.
import { Code, ConnectError } from "@connectrpc/connect";
import { Capability, mount, principalKey, serve } from "arbor-platform/server";
import { LibraryService } from "./library_pb.js";

function setFields({ responseHeader, responseTrailer }) {
  responseHeader.set("x-header", "h");
  responseHeader.append("x-several", "1");
  responseHeader.append("x-several", "2");
  responseTrailer.set("x-trailer", "t");
}

// By the last part of the name.
function failAs(name) {
  switch (name.split("/").at(-1)) {
    case "missing":
      throw new ConnectError(`there is no book ${name}, 50% of ü`, Code.NotFound, { "x-metadata": "m" });
    case "busy":
      throw new ConnectError("busy", Code.Unavailable);
    case "limited":
      throw new ConnectError("limited", Code.ResourceExhausted);
    case "unknown":
      throw new ConnectError("who are you", Code.Unauthenticated);
    case "bug":
      throw new TypeError("secret");
  }
}

const library = {
  getBook({ name }, context) {
    if (name.includes("fields")) setFields(context);
    failAs(name);
    const title = name.endsWith("long") ? "x".repeat(5_000) : "Dune";
    return {
      name,
      title,
      location: { case: "group", value: context.values.get(principalKey)?.identityUid ?? "nobody" },
    };
  },
  createBook({ book }, { values }) {
    return { name: "books/new", title: `${book?.title}, added by ${values.get(principalKey)?.identityUid}`, pages: 0 };
  },
  async *listBooks({ group, count }, context) {
    if (count === 7) setFields(context);
    for (let n = 1; n <= Math.min(count, 50); n++)
      yield { name: `books/${n}`, location: { case: "group", value: group } };
    if (count === 3) failAs("books/missing");
    if (count === 4) failAs("books/bug");
  },
  async returnBooks(books, context) {
    let count = 0;
    for await (const { name } of books) {
      if (name.includes("fields")) setFields(context);
      failAs(name);
      count++;
    }
    return { count };
  },
  async *ask(questions, context) {
    for await (const { text } of questions) {
      if (text.includes("fields")) setFields(context);
      failAs(text);
      yield { text: `${text}?` };
    }
  },
};

const server = await serve({
  settings: JSON.parse(process.argv[2]),
  mounts: [
    mount(LibraryService, library, {
      access: {
        getBook: "public",
        createBook: "authenticated",
        deleteBook: "authenticated",
        listBooks: { capabilities: [Capability.CAP_IAM_GROUPS_LIST], scope: "group" },
        returnBooks: "authenticated",
        ask: "public",
      },
      http: {
        getBook: { get: "/library/v1/{name=books/**}" },
        createBook: { post: "/library/v1/books", body: "book" },
        listBooks: { get: "/library/v1/groups/{group=**}/books" },
      },
    }),
  ],
});
console.log(`arbor listening on ${server.url}`);
process.once("SIGTERM", () => server.stop());
