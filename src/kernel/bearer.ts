const BEARER = /^bearer +([^ ].*)$/i;

/**
 * Parses the credential of an Authorization header of the scheme Bearer: the scheme in any case, one space or several,
 * the credential (RFC 6750, section 2.1).
 *
 * @returns undefined without a header, and for another scheme
 */
export function parseBearer(authorization: string | undefined): string | undefined {
  return BEARER.exec(authorization ?? "")?.[1];
}
