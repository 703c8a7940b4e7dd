// How pages are searched: the build makes the index, and the browser reads it with the same options.
export const searchOptions = {
  fields: ["page", "heading", "body"],
  storeFields: ["url", "page", "heading", "text"],
  searchOptions: { prefix: true, fuzzy: 0.15, combineWith: "AND", boost: { page: 4, heading: 3 } },
};
