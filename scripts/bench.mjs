// The benchmarks (bench/README.md). Each says in its first lines which options it has.
//   npm run bench [-- NAME [OPTIONS]]
import { runNamed } from "./run-named.mjs";

const bench = (name, ...args) => ({ run: ["--import", "tsx", `bench/${name}.ts`, ...args] });

runNamed("bench", {
  table: { what: "what a caller cares about, in one table", ...bench("table"), build: true, pg: ["--durable"] },
  compare: { what: "processor time per call beside another checkout", ...bench("compare") },
  release: { what: "the same beside the last release", run: ["scripts/compare-release.mjs"] },
  list: { what: "pages of lists, and totals", ...bench("list") },
  skip: { what: "pages after a long `skip`, in every order", ...bench("skip") },
  events: { what: "delivery of events, with dead sinks", ...bench("events") },
  audit: { what: "what the body of an audit row costs", ...bench("audit-rows") },
  bindings: { what: "pages of role bindings with their joins", ...bench("bindings") },
  access: { what: "questions about rights", ...bench("access") },
  scim: { what: "requests of directories with 100,000 people", ...bench("scim") },
  unpaginated: { what: "lists of version 1 without pages", ...bench("unpaginated-lists") },
  advisories: { what: "filters of advisories", ...bench("advisories"), build: true },
  gateway: { what: "matching, decoding and encoding alone", ...bench("gateway") },
  copy: { what: "`arbor copy` to PostgreSQL and back", ...bench("copy"), build: true, pg: [] },
  exchange: { what: "the token exchange without HTTP", ...bench("exchange") },
  overload: { what: "goodput and latency at five times the peak", ...bench("overload") },
  loops: { what: "thousands of connections with one call each", ...bench("closed-loops") },
  boot: { what: "the start, idle memory and first calls", ...bench("boot"), build: true },
  clean: { what: "deletes the data of the others", ...bench("seed", "--clean") },
});
