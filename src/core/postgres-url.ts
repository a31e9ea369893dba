/** What a password needs in a URL. */
export const ENCODED_PASSWORD =
  'in a password, write `@` as `%40`, `:` as `%3A`, `/` as `%2F`, `?` as `%3F`, `#` as `%23` and `%` as `%25`';

/** The parameters of libpq that `pg` applies, with their values; undefined: any text. */
const PARAMETERS: ReadonlyMap<string, readonly string[] | undefined> = new Map([
  ['sslmode', ['verify-full', 'verify-ca', 'require', 'prefer', 'no-verify', 'disable']],
  ['sslrootcert', undefined],
  ['sslcert', undefined],
  ['sslkey', undefined],
  ['sslnegotiation', ['postgres', 'direct']],
  ['host', undefined],
  ['port', undefined],
  ['user', undefined],
  ['password', undefined],
  ['application_name', undefined],
  ['options', undefined],
]);

/** Says which parameter of a URL of PostgreSQL `pg` would ignore, or ignore the value of. Quotes no secret. */
export function parameterProblem(url: string): string | undefined {
  const parsed = URL.parse(url);
  for (const [name, value] of parsed?.searchParams ?? []) {
    const problem = oneProblem(name, value);
    if (problem === undefined) continue;
    // A `?` in a password begins the parameters, too.
    return parsed?.search.includes('@') ? ENCODED_PASSWORD : problem;
  }
  return undefined;
}

function oneProblem(name: string, value: string): string | undefined {
  if (!PARAMETERS.has(name))
    return `the parameter \`${name}\` has no effect: remove it; expected ${listed([...PARAMETERS.keys()])}`;
  const allowed = PARAMETERS.get(name);
  if (allowed !== undefined && !allowed.includes(value))
    return `\`${name}=${value}\` is not supported: expected ${listed(allowed)}`;
  if (name === 'port' && !(/^\d{1,5}$/.test(value) && Number(value) > 0 && Number(value) < 65_536))
    return `\`port=${value}\` is not a port: expected 1 to 65535`;
  return undefined;
}

const listed = (names: readonly string[]): string =>
  names
    .map((name) => `\`${name}\``)
    .join(', ')
    .replace(/, ([^,]*)$/, ' or $1');
