// Errors in the form of SCIM (RFC 7644, section 3.12).

const ERROR_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error";

/** The kinds of errors that RFC 7644 names. */
export type ScimErrorType =
  | "invalidFilter"
  | "tooMany"
  | "uniqueness"
  | "mutability"
  | "invalidSyntax"
  | "invalidPath"
  | "noTarget"
  | "invalidValue"
  | "invalidVers"
  | "sensitive";

/** A request that SCIM answers with an error. */
export class ScimError extends Error {
  override readonly name = "ScimError";
  readonly status: number;
  readonly scimType: ScimErrorType | undefined;
  /** What callers read. */
  readonly detail: string;

  /** @param status the status of HTTP */
  constructor(status: number, detail: string, scimType?: ScimErrorType) {
    super(detail);
    this.status = status;
    this.detail = detail;
    this.scimType = scimType;
  }
}

/** Creates the error of a request that is wrong in itself: 400. */
export function badRequest(scimType: ScimErrorType, detail: string): ScimError {
  return new ScimError(400, detail, scimType);
}

/** The body of the response to an error. */
export function toErrorBody({ status, scimType, detail }: ScimError): Record<string, unknown> {
  return {
    schemas: [ERROR_SCHEMA],
    status: String(status),
    ...(scimType !== undefined && { scimType }),
    detail,
  };
}

/** A name or a text of a request, short enough for an error that quotes it. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
