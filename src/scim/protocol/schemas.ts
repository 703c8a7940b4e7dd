// The schemas of people and groups as data (RFC 7643, sections 3.1 and 4).

export interface Attribute {
  readonly name: string;
  readonly type: "string" | "boolean" | "decimal" | "integer" | "dateTime" | "reference" | "binary" | "complex";
  readonly description: string;
  readonly multiValued: boolean;
  readonly required: boolean;
  /** Whether small and capital letters of its texts differ. */
  readonly caseExact: boolean;
  readonly mutability: "readOnly" | "readWrite" | "immutable" | "writeOnly";
  readonly returned: "always" | "never" | "default" | "request";
  readonly uniqueness: "none" | "server" | "global";
  readonly canonicalValues: readonly string[];
  readonly referenceTypes: readonly string[];
  /** Of a complex attribute. */
  readonly subAttributes: readonly Attribute[];
  /** Whether it names the resource: 1 to 256 characters, none of them a control character. */
  readonly isIdentifier: boolean;
  /** The most values that it may have, where it is multi-valued. */
  readonly maxValues: number;
}

export interface Schema {
  /** Its URN. */
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly attributes: readonly Attribute[];
}

export interface ResourceType {
  readonly name: string;
  readonly description: string;
  /** Its path below the base URL. */
  readonly endpoint: string;
  readonly schema: Schema;
  readonly extensions: readonly Schema[];
  /** The most characters that a resource may have as JSON. */
  readonly maxSize: number;
  /** The attributes that all resources have, those of the schema, and a complex attribute for each extension, named by its URN. */
  readonly attributes: readonly Attribute[];
}

const MAX_VALUES = 1_000;

type Options = Partial<Omit<Attribute, "name" | "type" | "description">>;

function define(name: string, type: Attribute["type"], description: string, options: Options = {}): Attribute {
  return {
    name,
    type,
    description,
    multiValued: false,
    required: false,
    caseExact: type === "reference" || type === "binary",
    mutability: "readWrite",
    returned: "default",
    uniqueness: "none",
    canonicalValues: [],
    referenceTypes: [],
    subAttributes: [],
    isIdentifier: false,
    maxValues: MAX_VALUES,
    ...options,
  };
}

function text(name: string, description: string, options: Options = {}): Attribute {
  return define(name, "string", description, options);
}

function complex(name: string, description: string, subAttributes: readonly Attribute[], options: Options = {}) {
  return define(name, "complex", description, { ...options, subAttributes });
}

// A list of values with the sub-attributes of RFC 7643, section 2.4.
function list(name: string, description: string, value: Attribute, types: readonly string[]): Attribute {
  const subAttributes = [value, text("display", "A name of the value for people to read."), ...labels(types)];
  return complex(name, description, subAttributes, { multiValued: true });
}

function labels(types: readonly string[]): Attribute[] {
  return [
    text("type", "What the value is for.", { canonicalValues: types }),
    define("primary", "boolean", "Whether this is the preferred value; true of at most one."),
  ];
}

// What all resources have (RFC 7643, sections 3 and 3.1). Schemas do not list these.
const COMMON: readonly Attribute[] = [
  define("schemas", "reference", "The URNs of the schemas of the resource.", {
    multiValued: true,
    required: true,
    caseExact: false,
    mutability: "readOnly",
    returned: "always",
    referenceTypes: ["uri"],
  }),
  text("id", "The id that the service gave the resource.", {
    caseExact: true,
    mutability: "readOnly",
    returned: "always",
    uniqueness: "server",
  }),
  text("externalId", "The id that the directory gave the resource.", { caseExact: true, isIdentifier: true }),
  complex(
    "meta",
    "What the service knows of the resource.",
    [
      text("resourceType", "The type of the resource.", { caseExact: true, mutability: "readOnly" }),
      define("created", "dateTime", "When it was created.", { mutability: "readOnly" }),
      define("lastModified", "dateTime", "When it was last changed.", { mutability: "readOnly" }),
      define("location", "reference", "Its URL.", { mutability: "readOnly", referenceTypes: ["uri"] }),
      text("version", "Its version, as ETag has it.", { caseExact: true, mutability: "readOnly" }),
    ],
    { mutability: "readOnly" },
  ),
];

const userSchema: Schema = {
  id: "urn:ietf:params:scim:schemas:core:2.0:User",
  name: "User",
  description: "A person.",
  attributes: [
    text("userName", "The name by which the directory knows the person; unique in any case of its letters.", {
      required: true,
      uniqueness: "server",
      isIdentifier: true,
    }),
    complex("name", "The parts of the person's name.", [
      text("formatted", "The whole name."),
      text("familyName", "The family name."),
      text("givenName", "The given name."),
      text("middleName", "Middle names."),
      text("honorificPrefix", "A title before the name, such as Dr."),
      text("honorificSuffix", "What follows the name, such as III."),
    ]),
    text("displayName", "The name that is shown."),
    text("nickName", "What the person is called."),
    define("profileUrl", "reference", "The URL of a page about the person.", { referenceTypes: ["external"] }),
    text("title", "The person's position, such as Vice President."),
    text("userType", "How the person belongs to the organisation, such as Contractor."),
    text("preferredLanguage", "The preferred language, as in the header Accept-Language."),
    text("locale", "The language and region by which dates and numbers are written, such as en-US."),
    text("timezone", "The time zone, such as Europe/Berlin."),
    define("active", "boolean", "Whether the person may sign in."),
    text("password", "Accepted and dropped: no passwords are stored.", { mutability: "writeOnly", returned: "never" }),
    list("emails", "E-mail addresses.", text("value", "An e-mail address."), ["work", "home", "other"]),
    list("phoneNumbers", "Phone numbers.", text("value", "A phone number."), [
      ...["work", "home", "mobile", "fax", "pager", "other"],
    ]),
    list("ims", "Addresses for instant messages.", text("value", "An address."), [
      ...["aim", "gtalk", "icq", "xmpp", "msn", "skype", "qq", "yahoo"],
    ]),
    list(
      "photos",
      "Pictures of the person.",
      define("value", "reference", "The URL of a picture.", { referenceTypes: ["external"] }),
      ["photo", "thumbnail"],
    ),
    complex(
      "addresses",
      "Postal addresses.",
      [
        text("formatted", "The whole address, as on a letter."),
        text("streetAddress", "Street and number."),
        text("locality", "City or place."),
        text("region", "State or region."),
        text("postalCode", "Postal code."),
        text("country", "The country as a code of two letters (ISO 3166-1)."),
        ...labels(["work", "home", "other"]),
      ],
      { multiValued: true },
    ),
    complex(
      "groups",
      "The groups of the person; changed by changes of the groups.",
      [
        text("value", "The id of a group.", { caseExact: true, mutability: "readOnly" }),
        define("$ref", "reference", "The URL of the group.", {
          mutability: "readOnly",
          referenceTypes: ["User", "Group"],
        }),
        text("display", "The name of the group.", { mutability: "readOnly" }),
        text("type", "Whether the person is a member itself, or by a group within the group.", {
          mutability: "readOnly",
          canonicalValues: ["direct", "indirect"],
        }),
      ],
      { multiValued: true, mutability: "readOnly" },
    ),
    list("entitlements", "What the person may use.", text("value", "An entitlement."), []),
    list("roles", "What the person is, such as Student.", text("value", "A role."), []),
    list("x509Certificates", "Certificates.", define("value", "binary", "A certificate (DER, in base64)."), []),
  ],
};

const enterpriseSchema: Schema = {
  id: "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User",
  name: "EnterpriseUser",
  description: "A person as a member of an organisation.",
  attributes: [
    text("employeeNumber", "A number or name that the organisation gave the person."),
    text("costCenter", "The cost centre."),
    text("organization", "The organisation."),
    text("division", "The division."),
    text("department", "The department."),
    complex("manager", "The person's manager.", [
      text("value", "The id of the manager.", { caseExact: true }),
      define("$ref", "reference", "The URL of the manager.", { referenceTypes: ["User"] }),
      text("displayName", "The name of the manager.", { mutability: "readOnly" }),
    ]),
  ],
};

const groupSchema: Schema = {
  id: "urn:ietf:params:scim:schemas:core:2.0:Group",
  name: "Group",
  description: "A group of people.",
  attributes: [
    text("displayName", "The name of the group.", { required: true }),
    complex(
      "members",
      "The members of the group.",
      [
        text("value", "The id of a member.", { caseExact: true, mutability: "immutable" }),
        define("$ref", "reference", "The URL of the member.", {
          mutability: "immutable",
          referenceTypes: ["User", "Group"],
        }),
        text("type", "What the member is.", { mutability: "immutable", canonicalValues: ["User", "Group"] }),
      ],
      { multiValued: true, maxValues: 20_000 },
    ),
  ],
};

function defineResourceType(fields: Omit<ResourceType, "attributes">): ResourceType {
  const extensions = fields.extensions.map((schema) => complex(schema.id, schema.description, schema.attributes));
  return { ...fields, attributes: [...COMMON, ...fields.schema.attributes, ...extensions] };
}

export const userType = defineResourceType({
  name: "User",
  description: "A person.",
  endpoint: "/Users",
  schema: userSchema,
  extensions: [enterpriseSchema],
  maxSize: 65_536,
});

export const groupType = defineResourceType({
  name: "Group",
  description: "A group of people.",
  endpoint: "/Groups",
  schema: groupSchema,
  extensions: [],
  maxSize: 4_194_304,
});

const indexes = new WeakMap<readonly Attribute[], ReadonlyMap<string, Attribute>>();

/** The attribute of a list with a name in any case of its letters. */
export function findAttribute(attributes: readonly Attribute[], name: string): Attribute | undefined {
  let index = indexes.get(attributes);
  if (index === undefined) {
    index = new Map(attributes.map((attribute) => [attribute.name.toLowerCase(), attribute]));
    indexes.set(attributes, index);
  }
  return index.get(name.toLowerCase());
}

/** An attribute and those that it lies in: such as an extension, its `manager`, and `value` of that. */
export type AttributeChain = readonly [Attribute, ...Attribute[]];

/**
 * Finds the attribute that a name of a filter, a path or a parameter means: `userName`, `name.givenName`,
 * `urn:…:User:department`, or the URN of an extension alone. A name without URN is first sought in the schema of the type,
 * then in its extensions: Entra ID filters by `manager`.
 */
export function resolveName(type: ResourceType, name: string): AttributeChain | undefined {
  const whole = findAttribute(type.attributes, name);
  if (whole !== undefined) return [whole];
  const lower = name.toLowerCase();
  const isIn = ({ id }: Schema) => lower.startsWith(`${id.toLowerCase()}:`);
  if (isIn(type.schema)) return resolveIn(type.attributes, name.slice(type.schema.id.length + 1));
  const extension = type.extensions.find(isIn);
  if (extension !== undefined) return resolveInExtension(type, extension, name.slice(extension.id.length + 1));
  if (lower.startsWith("urn:")) return undefined;
  for (const found of [
    resolveIn(type.attributes, name),
    ...type.extensions.map((schema) => resolveInExtension(type, schema, name)),
  ]) {
    if (found !== undefined) return found;
  }
  return undefined;
}

function resolveInExtension(type: ResourceType, { id }: Schema, name: string): AttributeChain | undefined {
  const extension = findAttribute(type.attributes, id);
  const found = extension && resolveIn(extension.subAttributes, name);
  return found && [extension, ...found];
}

/** Finds the attribute, or the sub-attribute, of a list of attributes. */
export function resolveIn(attributes: readonly Attribute[], name: string): AttributeChain | undefined {
  const [first = "", second, ...more] = name.split(".", 3);
  const attribute = findAttribute(attributes, first);
  if (attribute === undefined || more.length > 0) return undefined;
  if (second === undefined) return [attribute];
  const sub = findAttribute(attribute.subAttributes, second);
  return sub && [attribute, sub];
}

/** A name for errors, such as `name.givenName`. */
export function formatChain(chain: readonly Attribute[]): string {
  return chain
    .map(({ name }) => (name.startsWith("urn:") ? `${name}:` : `${name}.`))
    .join("")
    .slice(0, -1);
}
