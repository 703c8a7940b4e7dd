// Chooses a role by its name or by what it allows, and shows what that is.
import { useQuery } from "@connectrpc/connect-query";
import { useId, useState } from "react";
import { type Role, RolesService } from "#gen/chainguard/platform/iam/v2/roles_pb.js";
import { listCapabilityNames } from "../../api/capabilities.js";
import { isWithin, parentOf } from "../../api/uids.js";
import { CapabilityList } from "../../ui/capability-list.js";
import { TextField } from "../../ui/field.js";
import { Failed, Loading } from "../../ui/page.js";

interface RoleFieldProps {
  /** The group that the role is for. */
  readonly group: string;
  readonly chosen: string;
  readonly onChange: (uid: string) => void;
  readonly wrong?: string | undefined;
}

const PAGE_SIZE = 200;
/** What the common roles are for, in words. */
const MEANINGS: Readonly<Record<string, string>> = {
  viewer: "sees everything, and changes nothing",
  editor: "sees everything, and changes repos, tags and subscriptions",
  owner: "does everything, also granting roles and deleting",
};
const COMMON = Object.keys(MEANINGS);

export function RoleField({ group, chosen, onChange, wrong }: RoleFieldProps) {
  const id = useId();
  const [filter, setFilter] = useState("");
  const { data, error } = useQuery(RolesService.method.listRoles, { orderBy: "name", pageSize: PAGE_SIZE });
  if (data === undefined) return error ? <Failed error={error} /> : <Loading what="roles" />;
  const usable = data.roles
    .filter(({ uid }) => !uid.includes("/") || isWithin(group, parentOf(uid)))
    .sort((one, other) => rankOf(one) - rankOf(other));
  const shown = usable.filter((role) => role.uid === chosen || matches(role, filter));
  const role = usable.find(({ uid }) => uid === chosen);
  return (
    <fieldset aria-describedby={wrong === undefined ? undefined : `${id}-wrong`}>
      <legend>Role</legend>
      <TextField
        label="Search"
        hint="A name, or what the role must allow, such as repo.create"
        type="search"
        value={filter}
        onChange={({ target }) => setFilter(target.value)}
      />
      <div className="option-list">
        {shown.map(({ uid, name, description }) => (
          <label key={uid}>
            <input type="radio" name={id} checked={uid === chosen} onChange={() => onChange(uid)} />
            <span>
              <span className="foreign">{name}</span>{" "}
              <span className="soft foreign">{(uid.includes("/") ? undefined : MEANINGS[name]) ?? description}</span>
            </span>
          </label>
        ))}
        {shown.length === 0 && <p className="soft">No role fits.</p>}
      </div>
      <span className="field">
        <span className="wrong" id={`${id}-wrong`} role="alert">
          {wrong}
        </span>
      </span>
      {role !== undefined && (
        <details className="commands">
          <summary>What {role.name} allows</summary>
          <div className="line scrolled">
            <CapabilityList names={listCapabilityNames(role.capabilities)} />
          </div>
        </details>
      )}
    </fieldset>
  );
}

// What most people look for comes first: the three common roles, those of the organisation, then the others by name.
function rankOf({ uid, name }: Role): number {
  const common = COMMON.indexOf(name);
  return uid.includes("/") ? COMMON.length : common >= 0 ? common : COMMON.length + 1;
}

// Every word must be in the name, or begin a capability or a part of one: `groups.create` is not meant by who may create
// `libraries.request_groups`.
function matches({ name, capabilities }: Role, filter: string): boolean {
  const names = listCapabilityNames(capabilities);
  const words = filter.toLowerCase().split(/\s+/);
  return words.every(
    (word) =>
      name.toLowerCase().includes(word) ||
      names.some((one) => one.startsWith(word) || one.split(".").some((part) => part.startsWith(word))),
  );
}
