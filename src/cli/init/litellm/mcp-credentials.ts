import { elementsOf, isRecord, membersOf, stringIn, textIn } from '../../../core/foreign.ts';
import type { Finish } from '../mcp-servers.ts';
import type { PlaceholderContext } from '../placeholders.ts';
import type { Lost } from './lost.ts';
import { secret, variableIn, withoutOsEnviron } from './references.ts';

type Entry = Readonly<Record<string, unknown>>;

/** Servers in the form of clients' settings, and what more the targets of some are. */
interface ClientServers {
  readonly servers: Entry;
  readonly finish: Finish;
}

/** LiteLLM writes the credential of an MCP server apart from its headers. */
export function clientServers(servers: Entry, context: PlaceholderContext, lost: Lost): ClientServers {
  const finish = new Map<string, (target: Entry) => Entry>();
  const all = Object.entries(servers).map(([name, server]) => {
    if (!isRecord(server)) return [name, server] as const;
    const { auth_type: type, auth_value: value, authentication_token: token, static_headers: fixed } = server;
    const isSigned = type === 'aws_sigv4';
    const spec = stringIn(server['spec_path']);
    if (isSigned) finish.set(name, signed(awsOf(name, server, context)));
    else if (spec !== undefined) finish.set(name, described(spec, context));
    if (spec !== undefined && stringIn(server['url']) === undefined)
      lost.add('spec_path', NO_HOST, { owner: name });
    const rest = membersOf(referencesFor({ ...clientSettings(server), ...toolsOf(name, server, lost) }));
    passedHeaders(name, elementsOf(server['extra_headers']).map(textIn), lost);
    const given = textIn([value, token].find((one) => typeof one === 'string'));
    const header = headerOf(textIn(type), given);
    if (header === undefined && !isSigned && type !== undefined && type !== null && type !== 'none') {
      lost.add('auth_type', reasonFor(textIn(type), given), { owner: name });
      for (const key of [...CREDENTIAL, ...OTHER_CREDENTIALS]) lost.covered.add(`mcp_servers.${name}.${key}`);
    }
    const headers = { ...membersOf(rest['headers']), ...membersOf(referencesFor(fixed)), ...header };
    if (rest['command'] !== undefined && Object.keys(headers).length > 0) {
      lost.add('auth_value', 'a process has no headers: give it the credential in `env`', { owner: name });
      for (const key of CREDENTIAL) lost.covered.add(`mcp_servers.${name}.${key}`);
    }
    return [name, Object.keys(headers).length > 0 ? { ...rest, headers } : rest] as const;
  });
  return { servers: Object.fromEntries(all), finish };
}

/** A remote server whose requests are signed, beside its headers. */
const signed =
  (aws: Entry) =>
  (target: Entry): Entry => {
    const policies = membersOf(target['policies']);
    return 'stdio' in target
      ? target
      : { ...target, policies: { ...policies, backendAuth: { ...membersOf(policies['backendAuth']), aws } } };
  };

/** An HTTP API with an OpenAPI document, at the address of the server. */
const described =
  (spec: string, context: PlaceholderContext) =>
  ({ mcp, sse, ...target }: Entry): Entry => ({
    openapi: {
      ...membersOf(mcp ?? sse),
      schema: { [/^https?:/.test(spec) ? 'url' : 'file']: withoutOsEnviron(spec, context) },
    },
    ...target,
  });

const NO_HOST = 'the address of the API is missing: write it as `openapi.host` of a target, with `schema`';

/** What a server has in the settings of clients, too. */
const clientSettings = (server: Entry): Entry =>
  Object.fromEntries(
    ['url', 'transport', 'command', 'args', 'env', 'cwd', 'headers', 'disabled', 'enabled'].flatMap((key) =>
      server[key] === undefined || server[key] === null ? [] : [[key, server[key]]],
    ),
  );

/** Headers of clients that LiteLLM passes on, and no others. */
function passedHeaders(name: string, headers: readonly string[], lost: Lost): void {
  const others = headers.filter((header) => !/^authorization$/i.test(header));
  if (others.length > 0) lost.add(`extra_headers: ${others.join(', ')}`, ALL_PASSED, { owner: name });
  // In this one, clients send the key of the gateway.
  if (others.length < headers.length) lost.add('extra_headers: Authorization', PASSED, { owner: name });
}

const ALL_PASSED =
  'the server gets all headers of clients, not only these: `requestHeaderModifier.remove` of the target removes some';

const PASSED =
  '`backendAuth.passthrough` of the target sends the token of the client, if `mcpAuthentication` or `jwtAuth` validates it';

/** Why a credential is not imported, and what has its place. */
function reasonFor(type: string, given: string): string {
  if (type === 'oauth2')
    return 'users sign in at the server with `backendAuth.oauth` of the target and `config.mcp.signIn` (docs/guides/act-as-the-user.md); a token for the gateway itself (client credentials) has no counterpart';
  if (type === 'oauth2_token_exchange')
    return '`backendAuth.oauthTokenExchange` of the target exchanges tokens that `mcpAuthentication` has validated (docs/guides/credentials-of-servers.md)';
  if (/passthrough|delegate/.test(type)) return PASSED;
  if (type === 'basic' && given !== '')
    return 'a header has the base64 of `user:password`: put `Basic` and that into a variable, and send it with `backendAuth.key` of the target and `location: { header: { name: Authorization } }`';
  if (HEADERS.has(type)) return '`auth_value` is missing';
  return `\`${type}\` has no counterpart; \`agctl config explain mcp.targets.policies.backendAuth\` lists what a target can send`;
}

const CREDENTIAL = ['auth_value', 'authentication_token', 'static_headers'];

/** Settings of credentials that are not imported: the line of `auth_type` says what has their place. */
const OTHER_CREDENTIALS = [
  ...['client_id', 'client_secret', 'scopes', 'audience', 'oauth2_flow', 'subject_token_type', 'token_url'],
  ...['authorization_url', 'registration_url', 'token_exchange_endpoint', 'delegate_auth_to_upstream'],
];

/** Signature of AWS: keys as references, and the rest as it is. */
function awsOf(name: string, server: Entry, context: PlaceholderContext): Entry {
  const text = (key: string): string | undefined => stringIn(server[key]) || undefined;
  const keys = Object.entries({
    accessKeyId: 'aws_access_key_id',
    secretAccessKey: 'aws_secret_access_key',
    sessionToken: 'aws_session_token',
  }).flatMap(([as, key]) => {
    const value = text(key);
    return value === undefined ? [] : [[as, secret(`${name}_${key}`, value, name, context)]];
  });
  const plain = Object.entries({ region: 'aws_region_name', serviceName: 'aws_service_name' }).flatMap(
    ([as, key]) => {
      const value = text(key);
      return value === undefined ? [] : [[as, withoutOsEnviron(value, context)]];
    },
  );
  const role = text('aws_role_name') ?? text('aws_role_arn');
  const session = text('aws_session_name');
  return {
    ...Object.fromEntries([...keys, ...plain]),
    ...(role !== undefined && {
      assumeRole: {
        roleArn: withoutOsEnviron(role, context),
        ...(session !== undefined && { sessionName: withoutOsEnviron(session, context) }),
      },
    }),
  };
}

/** Members that say who may use a server, and which of its tools. */
const RIGHTS = /^(?:dis)?allowed_|^available_on_|access_groups|_permissions?$/;

const TOOLS: Readonly<Record<string, string>> = {
  allowed_tools: 'includeTools',
  disallowed_tools: 'excludeTools',
};

const withoutPrefix = (text: string, prefix: string): string =>
  text.startsWith(prefix) ? text.slice(prefix.length) : text;

/**
 * The lists of tools, by the names that clients' settings have. LiteLLM also accepts names with that of the server before them. An
 * empty list allows every tool.
 */
function toolsOf(name: string, server: Entry, lost: Lost): Entry {
  const lists = Object.entries(TOOLS).flatMap(([key, as]) => {
    const tools = elementsOf(server[key]);
    return tools.length === 0 ? [] : [[as, tools.map((tool) => withoutPrefix(textIn(tool), `${name}-`))]];
  });
  for (const key of Object.keys(server)) {
    const isKept = Object.hasOwn(TOOLS, key) && (server[key] === null || Array.isArray(server[key]));
    if (!RIGHTS.test(key) || isKept) continue;
    lost.add(key, 'who may use a target, and how, is set with `mcp.policies.mcpAuthorization`', {
      owner: name,
      isWarning: true,
    });
    lost.covered.add(`mcp_servers.${name}.${key}`);
  }
  return Object.fromEntries(lists);
}

/** What stands before the value in the header of a type. */
const HEADERS: ReadonlyMap<string, readonly [header: string, prefix: string]> = new Map([
  ['api_key', ['X-API-Key', '']],
  ['bearer_token', ['Authorization', 'Bearer ']],
  ['token', ['Authorization', 'token ']],
  ['authorization', ['Authorization', '']],
]);

function headerOf(type: string, given: string): Entry | undefined {
  if (given === '') return undefined;
  const isReference = variableIn(given) !== undefined;
  if (type === 'basic')
    return isReference ? undefined : { Authorization: `Basic ${Buffer.from(given).toString('base64')}` };
  const [header, prefix] = HEADERS.get(type) ?? [];
  return header === undefined ? undefined : { [header]: `${prefix}${referenceIn(given)}` };
}

function referenceIn(text: string): string {
  const variable = variableIn(text);
  return variable === undefined ? text : `\${${variable}}`;
}

/** LiteLLM reads `os.environ/NAME` anywhere in its file: as address, argument, variable or header. */
function referencesFor(value: unknown): unknown {
  if (typeof value === 'string') return referenceIn(value);
  if (Array.isArray(value)) return value.map(referencesFor);
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, referencesFor(each)]))
    : value;
}
