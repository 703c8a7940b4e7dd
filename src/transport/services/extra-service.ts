import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { MethodEntry } from "../../pipeline/method-table.js";
import { mount } from "../../pipeline/mount.js";

/** A service that everybody may call and that needs no database: health and reflection. */
export interface ExtraService {
  readonly desc: DescService;
  readonly entries: readonly MethodEntry[];
}

/** Defines such a service by its descriptor and its implementation. */
export function defineService<S extends DescService>(desc: S, impl: Partial<ServiceImpl<S>>): ExtraService {
  const { entries } = mount(desc, impl, { access: "public" });
  return { desc, entries: entries.map((entry) => ({ ...entry, isUntraced: true })) };
}
