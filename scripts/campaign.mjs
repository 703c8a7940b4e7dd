// Programs that kill, attack or compare the service for as long as they are told. Each says in its first lines which options it has.
//   npm run campaign [-- NAME [OPTIONS]]
import { runNamed } from "./run-named.mjs";

const script = (name) => ({ run: [`scripts/${name}.mjs`] });

runNamed("campaign", {
  long: {
    what: "the long versions of all of them and of random tests, for hours, or of those named",
    ...script("long-campaigns"),
  },
  kill9: { what: "kill -9 of writers and servers on SQLite", ...script("kill9") },
  "event-kills": { what: "kill -9 of a server that delivers events", ...script("event-kills") },
  "worker-kills": { what: "kill -9 of workers, while clients retry", ...script("worker-kills") },
  "node-kills": { what: "kill -9 of nodes on PostgreSQL, while clients retry", ...script("node-kills"), pg: [] },
  "copy-kills": { what: "kill -9 of `arbor copy`", ...script("copy-kills"), pg: [] },
  "job-takeovers": { what: "background jobs whose node is killed or paused", ...script("job-takeovers"), pg: [] },
  "power-cut": { what: "power cuts of a server on SQLite; needs root", ...script("power-cut") },
  "host-faults": { what: "faults of the machine, such as a full disk; needs root", ...script("host-faults") },
  failover: { what: "failovers of PostgreSQL under Patroni; needs root", ...script("failover") },
  backup: { what: "a backup under load, a loss, a restore", ...script("backup-drill") },
  freshness: { what: "whether a read sees what another server has just changed", ...script("freshness") },
  soak: { what: "memory and tables, while a clock leaps through most of a year", ...script("soak") },
  migrate: {
    what: "an expand phase that is killed, while a server writes",
    ...script("migrate-under-load"),
    build: true,
  },
  hostile: { what: "attacks, while an honest client makes calls", ...script("hostile") },
  fuzz: { what: "random requests, whose responses are checked", ...script("fuzz") },
  "fuzz-wire": { what: "random bytes over HTTP/1, HTTP/2 or in envelopes", ...script("fuzz-wire") },
  tokens: { what: "mutated tokens, all of which must be rejected", ...script("mutate-tokens") },
  decisions: { what: "random decisions of authorization beside a model", ...script("decisions") },
  "behaviour-faults": {
    what: "which faults of the service the tests of this checkout, and of another one, catch",
    ...script("behaviour-faults"),
  },
  access: { what: "questions about rights beside the guard of every method", ...script("access") },
});
