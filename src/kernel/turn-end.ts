/**
 * Puts things off to the end of this turn of the event loop, where they are taken one after another
 * in their order. Made for answers: to write one wakes its reader up, which costs more than all that
 * went before, while a reader that is awake reads on by itself. So answers leave together.
 *
 * @param take must not throw; nobody is left to tell
 */
export function atTurnEnd<T>(take: (item: T) => void): (item: T) => void {
  let waiting: T[] = [];

  function takeAll(): void {
    const items = waiting;
    waiting = [];
    for (const item of items) take(item);
  }

  return (item) => {
    if (waiting.push(item) === 1) setImmediate(takeAll);
  };
}
