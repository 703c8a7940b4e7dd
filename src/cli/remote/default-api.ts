/** Where a service started with defaults is. */
export const DEFAULT_API = "http://127.0.0.1:8080";
