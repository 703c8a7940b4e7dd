/** The ErrorInfo of an error as JSON. */
export const info = (reason: string) =>
  `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"${reason}","domain":"iam.test"}`;
/** An error with nothing but its ErrorInfo as JSON. */
export const failure = (code: number, reason: string, message: string) =>
  `{"code":${code},"message":"${message}","details":[${info(reason)}]}`;
/** An error about one field as JSON. */
export const violation = (field: string, rule: string) =>
  `{"code":3,"message":"Invalid argument: ${field}: ${rule}","details":[${info("INVALID_ARGUMENT")},` +
  `{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"${field}","description":"${rule}"}]}]}`;
