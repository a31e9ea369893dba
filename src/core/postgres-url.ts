/** What a password needs in a URL. */
const ENCODED_PASSWORD =
  'in a password, write `@` as `%40`, `:` as `%3A`, `/` as `%2F`, `?` as `%3F`, `#` as `%23` and `%` as `%25`';

const FORM = '`postgres://user:password@host:5432/database`';

/** The parameters of libpq that are applied, with their values; undefined: any text. */
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
  ['connect_timeout', undefined],
  // Neon's URLs have it.
  ['channel_binding', ['require', 'prefer', 'disable']],
]);

/** Seconds that `connect_timeout` may have: a hung server must not hold calls for longer than a request may take. */
const LONGEST_CONNECT = 60;

/** What a valid URL says of connections that `pg` reads from its options only. */
export function connectionSettings(url: string): {
  readonly connectTimeout?: number;
  readonly bindsChannel: boolean;
} {
  const parameters = URL.parse(url)?.searchParams;
  const seconds = parameters?.get('connect_timeout');
  return {
    ...(seconds != null && { connectTimeout: Number(seconds) * 1_000 }),
    // With `require`, too, `pg` binds if the server can; what is between them cannot hide that it can (RFC 5802 section 6).
    bindsChannel: ['require', 'prefer'].includes(parameters?.get('channel_binding') ?? ''),
  };
}

/** Says why the driver could not read a URL of PostgreSQL. Quotes no secret. */
export function formProblem(url: string): string | undefined {
  if (!/^postgres(?:ql)?:/i.test(url)) return `expected ${FORM}`;
  const parsed = URL.parse(url);
  // The driver decodes them.
  if (parsed === null || /%(?![0-9a-f]{2})/i.test(parsed.username + parsed.password))
    return `not a valid URL of PostgreSQL: expected ${FORM}; ${ENCODED_PASSWORD}`;
  return undefined;
}

/** Says which parameter of a URL of PostgreSQL, or value of one, would have no effect. Quotes no secret. */
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
  if (name === 'port' && !isWithin(value, 65_535))
    return `\`port=${value}\` is not a port: expected 1 to 65535`;
  if (name === 'connect_timeout' && !isWithin(value, LONGEST_CONNECT))
    return `\`connect_timeout=${value}\` is not supported: expected 1 to ${LONGEST_CONNECT} seconds`;
  return undefined;
}

const isWithin = (value: string, most: number): boolean =>
  /^\d{1,5}$/.test(value) && Number(value) > 0 && Number(value) <= most;

const listed = (names: readonly string[]): string =>
  names
    .map((name) => `\`${name}\``)
    .join(', ')
    .replace(/, ([^,]*)$/, ' or $1');
