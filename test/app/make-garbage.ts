// A process that makes garbage and prints the largest size of its heap in bytes; `limited` as its argument
// limits the growth of the heap first.
import { limitHeapGrowth } from "../../src/app/process.js";

const ROUNDS = 20;
const OBJECTS = 200_000;

if (process.argv[2] === "limited") limitHeapGrowth();
// Objects that live for four rounds, as waiting requests do.
const kept: object[] = [];
let peak = 0;
for (let round = 0; round < ROUNDS; round++) {
  kept[round % 4] = Array.from({ length: OBJECTS }, (_, i) => ({ i, text: `x${i}` }));
  peak = Math.max(peak, process.memoryUsage().heapTotal);
}
console.log(peak);
