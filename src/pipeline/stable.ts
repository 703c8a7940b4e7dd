// Version 2 is version 2beta1 under other names: same methods, same messages,
// same handlers.
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ServedService } from "./method-table.js";

/**
 * A service served under another name as well. Names, paths and options are those of `stable`; its
 * messages are read and written as those of `beta`, whose bytes and JSON are the same, so that handlers
 * need not know by which name they were called.
 *
 * @throws TypeError at boot when the two differ in a method.
 */
export function servedAs(stable: DescService, beta: ServedService): ServedService {
  const desc: DescService = { ...stable, methods: [], method: {} };
  for (const method of stable.methods) {
    const original = beta.desc.method[method.localName];
    if (original?.methodKind !== method.methodKind) throw new TypeError(`${method} is not in ${beta.desc.typeName}`);
    const joined = { ...method, parent: desc, input: original.input, output: original.output } as DescMethod;
    desc.methods.push(joined);
    desc.method[method.localName] = joined;
  }
  return { ...beta, desc, published: stable };
}
