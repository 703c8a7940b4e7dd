// Loaded before Node's test runner, which follows every promise from its creation to its collection to learn what test an
// error belongs to: an await costs twenty times as much. Here AsyncLocalStorage follows the tests, which is four times as
// fast on Node 20 and as fast as no test on 24. The runner takes what it uses from node:async_hooks, so it gets
// replacements. An error after the end of a test fails its file instead of the test; the file then runs again without this.
import hooks from "node:async_hooks";

const { AsyncLocalStorage, AsyncResource, createHook, executionAsyncId } = hooks;
const current = new AsyncLocalStorage();
/** The id of the test whose function is on the stack. */
let running;
/** The id of the suite whose file is evaluated, in which the evaluation of a module does not know of the import. */
let loading;
let noteTest;

hooks.createHook = ({ init }) => {
  noteTest = init;
  const hook = { enable: () => hook, disable: () => hook };
  return hook;
};

hooks.executionAsyncId = () => running ?? loading ?? current.getStore() ?? executionAsyncId();

// Tests, suites and their hooks extend it.
hooks.AsyncResource = class extends AsyncResource {
  constructor(type, options) {
    super(type, options);
    noteTest?.(this.asyncId(), type, this.triggerAsyncId(), this);
  }

  runInAsyncScope(callback, receiver, ...args) {
    const before = running;
    running = this.asyncId();
    try {
      return current.run(running, () => super.runInAsyncScope(callback, receiver, ...args));
    } finally {
      running = before;
    }
  }
};

const { describe } = await import("node:test");
Object.assign(hooks, { AsyncResource, createHook, executionAsyncId });

/**
 * Makes each file a suite of its name. All are loaded, one after the other, before the first test runs.
 *
 * @param files pairs of a name and a path
 */
export function describeFiles(files) {
  const loads = [];
  const loaded = Promise.resolve().then(() => Promise.allSettled(loads));
  let last = Promise.resolve();
  for (const [name, path] of files) {
    describe(name, () => {
      const suite = running;
      const load = last.then(async () => {
        loading = suite;
        await import(path);
      });
      last = load.catch(() => {}).then(() => (loading = undefined));
      loads.push(last);
      return load.then(() => loaded);
    });
  }
}
