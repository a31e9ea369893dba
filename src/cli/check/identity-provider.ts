import type { z } from 'zod';
import { messageOf } from '../../core/errors.ts';
import { elementsOf, isRecord, membersOf, parseJson, textIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { counted } from '../../core/render/counted.ts';
import { policyOf, routesOf, settingsOf } from '../../server/config/plan/plan.ts';
import { checkIssuer, firstMetadata, openIdConfiguration } from '../../server/credentials/issuer-metadata.ts';
import { keySetUrlIn, wellKnownKeys } from '../../server/policies/jwt/issuer.ts';
import { precheckToken } from '../../server/policies/jwt/jwt-precheck.ts';
import { checkClaims } from '../../server/policies/jwt/token-validator.ts';
import {
  type McpAuthenticationConfig,
  mcpAuthentication,
} from '../../server/policies/mcp-authentication/index.ts';
import { type Provider, providerOf } from '../../server/policies/mcp-authentication/provider.ts';
import type { Config as OidcConfig } from '../../server/policies/oidc/config.ts';
import { oidc } from '../../server/policies/oidc/index.ts';
import { DocumentClient } from '../../server/transport/upstream/document-client.ts';
import {
  type CheckContext,
  type CheckGroup,
  type CheckOptions,
  type CheckResult,
  check,
  fail,
  notKnown,
  ok,
  skip,
  warn,
} from './check.ts';
import { tokenFix } from './token-fix.ts';

/** Checks everything that a token needs to be accepted, against the identity provider itself. */
export const identityProvider: CheckGroup = {
  name: 'idp',
  title: (context) =>
    `identity provider   ${[...policiesOf(context), ...signInsOf(context)]
      .map(({ issuer }) => issuer)
      .join(', ')}`.trimEnd(),
  run(context) {
    if (context.config === undefined) return [check('idp', notKnown)];
    const policies = policiesOf(context);
    const signIns = signInsOf(context);
    if (policies.length + signIns.length === 0)
      return [check('idp', skip('no route has mcpAuthentication or oidc'))];
    const client = new DocumentClient();
    const all = [
      ...policies.map((policy) => checkProvider(policy, client, context.options)),
      ...signIns.map((policy) => checkSignIn(policy, client, context.options)),
    ];
    void Promise.allSettled(all).then(() => client.close());
    return [...policies, ...signIns].map(({ issuer }, index) => check(issuer, all[index] ?? []));
  },
};

const policiesOf = (context: CheckContext) => configsOf(context, mcpAuthentication);

/** Sign-ins of browsers, also those at the pages on a gateway, whose provider is found by its metadata. */
const signInsOf = (context: CheckContext) =>
  configsOf(context, oidc).filter(
    ({ discovery, authorizationEndpoint, tokenEndpoint }) =>
      discovery === undefined && (authorizationEndpoint == null || tokenEndpoint == null),
  );

/** One entry per issuer, which routes often share. */
function configsOf<Schema extends z.ZodType<{ readonly issuer: string }>>(
  { gateways }: CheckContext,
  kind: { readonly key: string; readonly schema: Schema },
): z.output<Schema>[] {
  const all = gateways.flatMap((gateway) =>
    [...gateway.listeners, ...routesOf(gateway)].flatMap(
      ({ policies }) => settingsOf(policyOf(policies, kind.key), kind) ?? [],
    ),
  );
  return [...new Map(all.map((config) => [config.issuer, config])).values()];
}

async function checkSignIn(
  { issuer }: OidcConfig,
  client: DocumentClient,
  { offline }: CheckOptions,
): Promise<CheckResult> {
  if (offline) return skip('not contacted (--offline)');
  try {
    await firstMetadata([openIdConfiguration(issuer)], client, (metadata) =>
      checkIssuer(metadata['issuer'], issuer),
    );
    return ok('metadata for the sign-in of browsers: the issuer matches the configuration');
  } catch (error) {
    return explain(
      'metadata for the sign-in of browsers',
      messageOf(error),
      'is the provider running, and is `issuer` of `oidc` correct?',
    );
  }
}

async function checkProvider(
  policy: McpAuthenticationConfig,
  client: DocumentClient,
  options: CheckOptions,
): Promise<CheckResult[]> {
  const token =
    options.token === undefined
      ? [skip('token not inspected (--token-file)')]
      : [checkToken(options.token, policy)];
  if (options.offline) return [skip('not contacted (--offline)'), ...token];
  const provider = providerOf(policy.provider);
  const metadata = await checkMetadata(policy, provider, client);
  return [
    metadata.result,
    ...(await checkKeys(metadata, policy, client)),
    ...token,
    await checkRegistration(metadata.document, policy, client, options),
    await checkLogin(metadata.document, client, options),
  ];
}

async function checkMetadata(
  { issuer, jwks }: McpAuthenticationConfig,
  provider: Provider,
  client: DocumentClient,
): Promise<{ result: CheckResult; document: Metadata; answered: boolean }> {
  const urls = provider.metadataUrls(issuer);
  const expected = provider.metadataIssuer?.(issuer) ?? issuer;
  try {
    // The first of the issuer; without one, any, to say what is wrong.
    const { value: document } = await firstMetadata(urls, client, (metadata) => {
      checkIssuer(metadata['issuer'], expected);
      return metadata;
    }).catch(() => firstMetadata(urls, client, (metadata) => metadata));
    if (document['issuer'] === expected)
      return { result: ok('metadata: the issuer matches the configuration'), document, answered: true };
    const result = fail(
      `metadata: the provider's issuer is ${String(document['issuer'])}, the configuration has ${issuer}`,
      'tokens contain the host name under which the provider was called: use one host name for clients, gateway and `issuer` (in containers too)',
    );
    return { result, document, answered: true };
  } catch (error) {
    const result = explain('metadata', messageOf(error), 'is the provider running, and is `issuer` correct?');
    return {
      result: jwks === undefined ? result : withOwnKeys(result),
      document: undefined,
      answered: false,
    };
  }
}

/** If `jwks` is configured, tokens can be validated without the metadata. */
function withOwnKeys({ message, fix = '' }: CheckResult): CheckResult {
  const effect = 'tokens are still validated with `jwks`, but clients cannot find out how to get one';
  return warn(message, `${fix} (${effect})`);
}

/** Checks only what the token itself shows; `agctl auth explain` verifies its signature. */
function checkToken(token: string, policy: McpAuthenticationConfig): CheckResult {
  const { issuer, audiences, provider, jwtValidationOptions } = policy;
  try {
    const { claims } = precheckToken(token.trim());
    const rules = {
      issuer,
      audiences,
      required: jwtValidationOptions.requiredClaims,
      accessTokenType: providerOf(provider).accessTokenType,
    };
    checkClaims(claims, rules, Date.now() / 1000);
    return ok('token: issuer, audience and times are accepted');
  } catch (error) {
    return fail(`token: ${messageOf(error)}`, tokenFix(messageOf(error), policy));
  }
}

async function checkRegistration(
  document: Metadata,
  policy: McpAuthenticationConfig,
  client: DocumentClient,
  { probeRegistration }: CheckOptions,
): Promise<CheckResult> {
  if (!probeRegistration) return skip('client registration not tried (--probe-registration)');
  const url =
    document?.['registration_endpoint'] ?? providerOf(policy.provider).registrationUrl(policy.issuer);
  if (typeof url !== 'string')
    return fail(
      'registration: the provider has no registration endpoint',
      'set `clientId` to a client that you registered manually',
    );
  const body = Buffer.from(
    JSON.stringify({
      client_name: 'agctl check',
      redirect_uris: ['http://127.0.0.1:1/callback'],
      token_endpoint_auth_method: 'none',
    }),
  );
  try {
    const answer = await client.send(
      url,
      { method: 'POST', path: new URL(url).pathname, headers: ['content-type', 'application/json'], body },
      LIMITS.registrationBytes,
    );
    if (answer.status !== 200 && answer.status !== 201)
      return explain(
        'registration',
        `the provider answered ${answer.status}: ${answer.body.toString('utf8').slice(0, 200)}`,
        'allow anonymous registration, or set `clientId`',
      );
    return ok(`registration: works${await removeClient(answer.body, client)}`);
  } catch (error) {
    return explain('registration', messageOf(error), 'is the provider running?');
  }
}

/** RFC 7592: the registration response says how to remove the client, if the provider supports that. */
async function removeClient(body: Buffer, client: DocumentClient): Promise<string> {
  try {
    const {
      registration_client_uri: uri,
      registration_access_token: access,
      client_id: id,
    } = membersOf(parseJson(body.toString('utf8')));
    const remains = `; client ${textIn(id)} remains registered at the provider`;
    if (typeof uri !== 'string' || typeof access !== 'string') return remains;
    const { status } = await client.send(
      uri,
      { method: 'DELETE', path: new URL(uri).pathname, headers: ['authorization', `Bearer ${access}`] },
      LIMITS.registrationBytes,
    );
    return status < 300 ? '' : remains;
  } catch {
    return '';
  }
}

async function checkLogin(
  document: Metadata,
  client: DocumentClient,
  { login }: CheckOptions,
): Promise<CheckResult> {
  if (login === undefined) return skip('login not tried (--login-user)');
  const url = document?.['token_endpoint'];
  if (typeof url !== 'string') return skip('login not tried: the token endpoint is not known');
  const form = new URLSearchParams({
    grant_type: 'password',
    client_id: login.client,
    username: login.user,
    password: login.password,
    scope: 'openid',
  });
  try {
    const answer = await client.send(
      url,
      {
        method: 'POST',
        path: new URL(url).pathname,
        headers: ['content-type', 'application/x-www-form-urlencoded'],
        body: Buffer.from(form.toString()),
      },
      LIMITS.registrationBytes,
    );
    if (answer.status === 200) return ok(`login: ${login.user} gets a token`);
    return explain(
      'login',
      `the provider answered ${answer.status}: ${answer.body.toString('utf8').slice(0, 200)}`,
      'check client, user and password; the client needs direct access grants',
    );
  } catch (error) {
    return explain('login', messageOf(error), 'is the provider running?');
  }
}

type Metadata = Readonly<Record<string, unknown>> | undefined;

/**
 * Checks whether the provider has signing keys at the expected URL. `answered`: it returned its metadata; if it did
 * not, the common cause is reported only once. Keys in the configuration or in a file are not checked here.
 */
async function checkKeys(
  { answered, document }: { readonly answered: boolean; readonly document: Metadata },
  policy: McpAuthenticationConfig,
  client: DocumentClient,
): Promise<CheckResult[]> {
  const { issuer, provider, jwks } = policy;
  const configured = typeof jwks === 'object' && 'url' in jwks ? jwks.url : undefined;
  if (jwks !== undefined && configured === undefined) return [];
  let url = configured ?? providerOf(provider).keySetUrl?.(issuer);
  try {
    url ??= document === undefined ? wellKnownKeys(issuer) : keySetUrlIn(document, issuer);
    const { value } = await client.fetch(url, LIMITS.keySetBytes);
    const count = elementsOf(membersOf(value)['keys'])
      .filter(isRecord)
      .filter(({ use }) => use === undefined || use === 'sig').length;
    return [
      count > 0
        ? ok(`keys: ${counted(count, 'signing key')} at ${url}`)
        : fail(`keys: none for signatures at ${url}`, keysFix(policy, document)),
    ];
  } catch (error) {
    if (!answered && configured === undefined)
      return [skip(`keys not available from ${url ?? wellKnownKeys(issuer)} either`)];
    return [explain('keys', messageOf(error), keysFix(policy, document))];
  }
}

/** The fix if the keys are not available. The metadata, as far as it is known, contains their URL (RFC 8414 §2). */
export function keysFix({ issuer, provider, jwks }: McpAuthenticationConfig, document: Metadata): string {
  const published = document?.['jwks_uri'];
  const asked =
    typeof jwks === 'object' && 'url' in jwks ? jwks.url : providerOf(provider).keySetUrl?.(issuer);
  if (
    asked !== undefined &&
    typeof published === 'string' &&
    published !== asked &&
    /^https?:\/\//.test(published)
  )
    return `the provider publishes its keys elsewhere: set \`jwks: { url: ${published} }\``;
  return provider === undefined && jwks === undefined
    ? 'set `jwks`, or `provider.idpx` for a provider with realms'
    : 'set `jwks` to the URL where the provider publishes its keys';
}

/** The metadata of the provider, or undefined if it is not available. */
export async function readMetadata(
  { issuer, provider }: McpAuthenticationConfig,
  client: DocumentClient,
): Promise<Metadata> {
  try {
    const urls = providerOf(provider).metadataUrls(issuer);
    return (await firstMetadata(urls, client, (metadata) => metadata)).value;
  } catch {
    return undefined;
  }
}

/** Messages of TLS, and those of providers with realms about a missing prerequisite, and what to do about each. */
const KNOWN: readonly (readonly [pattern: RegExp, fix: string])[] = [
  [
    /the certificate (?:was issued by an untrusted authority|is self-signed)/,
    'set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority when starting agctl',
  ],
  [/HTTPS required/i, "for local tests without TLS set the realm's sslRequired to NONE; not in production"],
  [
    /Account is not fully set up/i,
    'give the user an email address, a first and a last name: the default profile requires them',
  ],
  [
    /Trusted Hosts/i,
    "in the realm's Trusted Hosts policy list the local addresses, turn host-sending-registration-request-must-match off (the provider sees the gateway's address) and keep client-uris-must-match on",
  ],
  [/Web Origins/i, "add the client's origin to the realm's Allowed Registration Web Origins"],
];

/** A failure at the provider with its fix: the one for its message, or `otherwise`. */
function explain(subject: string, problem: string, otherwise: string): CheckResult {
  return fail(`${subject}: ${problem}`, KNOWN.find(([pattern]) => pattern.test(problem))?.[1] ?? otherwise);
}
