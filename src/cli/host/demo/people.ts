// Who is who in the demo.

/** Somebody with an account at the provider. */
export interface DemoPerson {
  readonly subject: string;
  readonly name: string;
  readonly email: string;
  /** What the page says of them to whoever picks one. */
  readonly about: string;
}

/** The name of the sample organisation. */
export const ORGANISATION = "demo.example";

/** What the provider calls the workload. */
export const WORKLOAD_SUBJECT = "workload:ci";

/** The owner of the organisation. */
export const alice: DemoPerson = {
  subject: "alice",
  name: "Alice",
  email: `alice@${ORGANISATION}`,
  about: `owner of ${ORGANISATION}`,
};

/** Everybody. */
export const people: readonly DemoPerson[] = [
  alice,
  { subject: "bob", name: "Bob", email: `bob@${ORGANISATION}`, about: "who needs an invite" },
];
