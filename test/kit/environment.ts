/**
 * Sets environment variables of this process until it is disposed, for libraries that read them themselves. Undefined
 * removes one.
 */
export function environment(values: Readonly<Record<string, string | undefined>>): Disposable {
  const before = Object.keys(values).map((name) => [name, process.env[name]] as const);
  const set = (name: string, value: string | undefined): void => {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  for (const [name, value] of Object.entries(values)) set(name, value);
  return {
    [Symbol.dispose]() {
      for (const [name, value] of before) set(name, value);
    },
  };
}
