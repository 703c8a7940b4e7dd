/** How a person wants to log in. */
export interface CliLoginRequest extends TokenLimits {
  /** The uid of an organisation's login provider, or the name of the organisation. */
  readonly provider?: string;
  /** The name of one of the service's own login providers. */
  readonly connection?: string;
  /** The code of an invite to accept. */
  readonly invite?: string;
}

/** What tokens shall be good for; everything where nothing is said. */
export interface TokenLimits {
  /** The uids of groups. */
  readonly scope?: readonly string[];
  /** The names of capabilities. */
  readonly cap?: readonly string[];
}

/** The parameters of the authorization endpoint that say where the person is known and what they accept. */
export function loginParameters({ provider, connection, invite }: CliLoginRequest): [name: string, value: string][] {
  const all = Object.entries({ idp_id: provider, connection, invite });
  return all.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]));
}

/**
 * The parameters that limit a token.
 *
 * @param scope the name of the parameter for groups, which is not the same everywhere
 */
export function limitParameters(
  { scope: groups = [], cap = [] }: TokenLimits,
  scope: "scope" | "scopes",
): [name: string, value: string][] {
  return [
    ...groups.map((uid): [string, string] => [scope, uid]),
    ...cap.map((name): [string, string] => ["cap", name]),
  ];
}
