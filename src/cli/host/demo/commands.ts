import type { Command } from "commander";

/** Adds `demo`. */
export function addDemoCommand(arbor: Command): void {
  arbor
    .command("demo")
    .description("try the service out: a sample organisation and a login without passwords, on this machine")
    .option("--data <directory>", "where to keep it; unless set, it is gone when the demo ends")
    .option("--listen <host:port>", "address to listen on: 127.0.0.1 or localhost", "127.0.0.1:8080")
    .action(async (options) => (await import("./run.js")).demoCommand(options));
}
