import type { AuthorizationServer } from 'oauth4webapi';
import { isLoopbackHost } from '../../core/dns-rebinding.ts';
import { messageOf } from '../../core/errors.ts';
import { elementsOf, isRecord, stringIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { checkIssuer, firstMetadata, metadataUrls, withoutSlash } from '../credentials/issuer-metadata.ts';
import { type DocumentClient, UnreachableError } from '../transport/upstream/document-client.ts';

// Where users of an MCP server sign in (MCP "Authorization", RFC 9728, RFC 8414). All of it is said by the server.

/** What a server says in `WWW-Authenticate` (RFC 6750 §3, RFC 9728 §5.1). */
export interface Challenge {
  readonly resourceMetadata?: string | undefined;
  readonly scope?: string | undefined;
  readonly error?: string | undefined;
}

export interface Discovered {
  readonly server: AuthorizationServer & { readonly issuer: string };
  /** The resource that tokens are requested for (RFC 8707). */
  readonly resource: string;
  readonly scopes: readonly string[];
  readonly clientMetadataDocuments: boolean;
}

/** A scope, or a list of them: printable ASCII without `"` and `\` (RFC 6749 §3.3). */
const SCOPES = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;
const SCOPES_LENGTH = 2000;

/** A parameter of a challenge, with its value in quotes or without, or a scheme (RFC 9110 §11.6.1). */
const CHALLENGE_PART = /([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))|([\w-]+)/g;

/** The parameters of the challenge `Bearer`, of those that matter here; of all challenges if no scheme is `Bearer`. */
export function challengeIn(header: string | string[] | undefined): Challenge {
  const text = [header ?? []].flat().join(', ').slice(0, LIMITS.challengeLength);
  const all = new Map<string, string>();
  const ofBearer = new Map<string, string>();
  let scheme = '';
  // From the start, so that nothing in a quoted sentence is taken for a parameter (python-sdk#3012).
  for (const [, name = '', quoted, plain = '', word] of text.matchAll(CHALLENGE_PART)) {
    if (word !== undefined) scheme = word.toLowerCase();
    for (const found of scheme === 'bearer' ? [all, ofBearer] : [all])
      if (word === undefined && !found.has(name.toLowerCase()))
        found.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain);
  }
  const found = ofBearer.size > 0 ? ofBearer : all;
  const scope = found.get('scope');
  return {
    resourceMetadata: found.get('resource_metadata'),
    scope: scope !== undefined && areScopes(scope) ? scope : undefined,
    error: found.get('error'),
  };
}

const areScopes = (text: string): boolean => text.length <= SCOPES_LENGTH && SCOPES.test(text);

/**
 * Finds the authorization server of the MCP server at `url`. `issuer` is configured. Rejects with the reason: something is missing,
 * contradicts what was asked for, or cannot be reached securely.
 */
export async function discover(
  url: URL,
  issuer: string | undefined,
  client: DocumentClient,
): Promise<Discovered> {
  const described =
    issuer === undefined
      ? await explained(
          resourceOf(url, client),
          'the server has no metadata that names its authorization server (RFC 9728)',
          'set `oauth.authorizationServer` to the issuer of that server',
        )
      : undefined;
  const named = issuer ?? described?.issuer ?? '';
  const value = await explained(
    firstMetadata(metadataUrls(named), client, (metadata) => serverIn(metadata, named, url)),
    `the authorization server ${named} has no metadata that can be used (RFC 8414)`,
    issuer === undefined
      ? 'set `oauth.authorizationServer` if the issuer is another one'
      : 'correct `oauth.authorizationServer`, which has to be the issuer exactly as its metadata names it',
  ).then((found) => found.value);
  return {
    server: value,
    resource: described?.resource ?? resourceFor(url),
    scopes: described?.scopes ?? [],
    clientMetadataDocuments: value['client_id_metadata_document_supported'] === true,
  };
}

/** Adds to a failure what was looked for, and what helps; nothing helps if the server cannot be reached. */
function explained<T>(work: Promise<T>, what: string, fix: string): Promise<T> {
  return work.catch((error: unknown) => {
    if (error instanceof UnreachableError) throw error;
    throw new Error(`${what}: ${messageOf(error)}: ${fix}`);
  });
}

/** RFC 8707 §2: without fragment. The MCP specification prefers it without a slash at the end. */
const resourceFor = ({ href }: URL): string => withoutSlash(href);

/** What the server says of itself, at the address of its challenge, or else at the well-known ones. */
async function resourceOf(
  url: URL,
  client: DocumentClient,
): Promise<{ issuer: string; resource: string; scopes: readonly string[] }> {
  const challenged = (await challengeOf(url, client)).resourceMetadata;
  const path = withoutSlash(url.pathname);
  const wellKnown = `${url.origin}/.well-known/oauth-protected-resource`;
  const urls = [...new Set([...(challenged === undefined ? [] : [challenged]), wellKnown + path, wellKnown])];
  const { value } = await firstMetadata(
    urls.filter((each) => isSecure(each, url)),
    client,
    (metadata) => {
      const { resource } = metadata;
      if (typeof resource !== 'string' || !contains(resource, url))
        throw new Error(`its metadata is that of another resource than ${url.origin}${url.pathname}`);
      const [issuer] = elementsOf(metadata['authorization_servers']);
      if (typeof issuer !== 'string' || !isSecure(issuer, url))
        throw new Error('its metadata names no authorization server with an https URL');
      const scopes = elementsOf(metadata['scopes_supported']).filter(
        (scope) => typeof scope === 'string' && areScopes(scope) && !scope.includes(' '),
      );
      return { issuer, resource, scopes: scopes.map(String).slice(0, LIMITS.oauthScopes) };
    },
  );
  return value;
}

/** The challenge of the server for a request without a token. A server that does not answer that may have metadata nevertheless. */
async function challengeOf(url: URL, client: DocumentClient): Promise<Challenge> {
  const body = Buffer.from('{"jsonrpc":"2.0","id":0,"method":"ping"}');
  const headers = ['accept', 'application/json, text/event-stream', 'content-type', 'application/json'];
  const request = { method: 'POST', path: url.pathname + url.search, headers, body };
  try {
    const { status, headers: answered } = await client.send(url.href, request, LIMITS.metadataBytes);
    return status === 401 ? challengeIn(answered['www-authenticate']) : {};
  } catch {
    return {};
  }
}

/** Whether the server at a URL is (part of) a resource: clients compare origin and path (as the SDKs of MCP do). */
function contains(resource: string, { origin, pathname }: URL): boolean {
  const found = URL.parse(resource);
  if (found?.origin !== origin || found.hash !== '' || found.search !== '') return false;
  const path = withoutSlash(found.pathname);
  return pathname === path || pathname.startsWith(`${path}/`);
}

/** Without TLS, anybody on the way could take codes and tokens. A server on this machine may name others there. */
function isSecure(text: string, server: URL): boolean {
  const url = URL.parse(text);
  if (url === null || url.username + url.password + url.hash !== '') return false;
  const isLocal = isLoopbackHost(url.hostname) && isLoopbackHost(server.hostname);
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLocal);
}

/** The metadata of an authorization server, of which only checked members are left (RFC 8414 §2). */
function serverIn(
  metadata: Readonly<Record<string, unknown>>,
  issuer: string,
  server: URL,
): Discovered['server'] {
  const own = ownIssuer(metadata['issuer'], issuer);
  const endpoint = (name: string): string | undefined => {
    const text = metadata[name];
    if (text === undefined || text === null) return undefined;
    if (typeof text === 'string' && isSecure(text, server)) return text;
    throw new Error(`its metadata has a \`${name}\` that is not an https URL`);
  };
  const authorization = endpoint('authorization_endpoint');
  const token = endpoint('token_endpoint');
  if (authorization === undefined || token === undefined)
    throw new Error('its metadata lacks `authorization_endpoint` or `token_endpoint`');
  // MCP "Authorization Code Protection": clients MUST refuse to proceed otherwise.
  if (!elementsOf(metadata['code_challenge_methods_supported']).includes('S256'))
    throw new Error('its metadata does not say that it supports PKCE with S256');
  const texts = (name: string): { [Name in string]: string[] } => {
    const found = elementsOf(metadata[name]).filter((each) => typeof each === 'string');
    return found.length === 0 ? {} : { [name]: found.map(String) };
  };
  const registration = endpoint('registration_endpoint');
  const revocation = endpoint('revocation_endpoint');
  return {
    issuer: own,
    authorization_endpoint: authorization,
    token_endpoint: token,
    ...(registration !== undefined && { registration_endpoint: registration }),
    ...(revocation !== undefined && { revocation_endpoint: revocation }),
    ...texts('token_endpoint_auth_methods_supported'),
    ...texts('scopes_supported'),
    authorization_response_iss_parameter_supported:
      metadata['authorization_response_iss_parameter_supported'] === true,
    client_id_metadata_document_supported: metadata['client_id_metadata_document_supported'] === true,
  };
}

/**
 * The issuer as the metadata names it. Without a path, it is the same with a slash at its end (RFC 3986 §6.2.3), which Google's MCP
 * servers add in what they say of `https://accounts.google.com` (python-sdk#1919, hermes-agent#95508, opencode#50036). Throws otherwise.
 */
function ownIssuer(found: unknown, expected: string): string {
  const isRoot = new URL(expected).pathname === '/';
  if (isRoot && typeof found === 'string' && withoutSlash(found) === withoutSlash(expected)) return found;
  checkIssuer(found, expected);
  return expected;
}

/** Members of an object that are texts, for what the database keeps. */
export const textsIn = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(isRecord(value) ? value : {}).flatMap(([name, text]) => {
      const found = stringIn(text);
      return found === undefined ? [] : [[name, found]];
    }),
  );
