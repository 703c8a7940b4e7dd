// Runs the tests of many files in one process, each file as a suite with its name.
import { createHook } from "node:async_hooks";
import { after, describe } from "node:test";

/**
 * Declares the tests of some files.
 *
 * While files are imported, Node's test runner follows asynchronous calls to know the suite in which a test is declared.
 * It goes on to follow every promise until it is collected, only to know the test of an error that nobody handles. That
 * costs 7 % of the processor time of the tests, so it ends before the first test. Such an error fails the suite of its
 * file instead.
 *
 * @param {Record<string, string>} files the address of each compiled file, by the name of its suite
 */
export function describeFiles(files) {
  const imports = [];
  const hooks = findHooksEnabledBy(() => {
    // The first suite, so the tests of the others wait for it.
    describe("imports", async () => {
      // Until all files below are being imported.
      await undefined;
      await Promise.allSettled(imports);
      for (const hook of hooks) hook.disable();
    });
  });
  const unhandled = [];
  for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, (error) => unhandled.push(error));
  for (const [name, address] of Object.entries(files)) {
    describe(name, () => {
      after(() => {
        if (unhandled.length > 0) throw new AggregateError(unhandled.splice(0), "errors that nothing handled");
      });
      const imported = import(address);
      imports.push(imported);
      return imported;
    });
  }
}

// Node has no other way to the hook of its test runner, which it creates with the first suite.
function findHooksEnabledBy(work) {
  const prototype = Object.getPrototypeOf(createHook({}));
  const { enable } = prototype;
  const enabled = [];
  prototype.enable = function (...args) {
    enabled.push(this);
    return enable.apply(this, args);
  };
  try {
    work();
  } finally {
    prototype.enable = enable;
  }
  return enabled;
}
