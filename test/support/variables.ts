/** Runs with these variables in the environment of the process, among none that begin with `OTEL_` otherwise. */
export async function withVariables<T>(
  variables: Readonly<Record<string, string>>,
  run: () => Promise<T> | T,
): Promise<T> {
  const before = { ...process.env };
  for (const name of Object.keys(before)) if (name.startsWith("OTEL_")) delete process.env[name];
  Object.assign(process.env, variables);
  try {
    return await run();
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
}
