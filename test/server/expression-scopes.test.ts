import { expect, test } from 'vitest';
import { configJsonSchema } from '../../src/server/config/json-schema.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { expressionScopes } from '../../src/server/features.ts';
import { findProblems } from '../../src/server/runtime/find-problems.ts';

const keys = expressionScopes.flatMap((scope) => scope.keys);

/** Every expression key with an unknown variable, whose error lists the variables of that scope. */
const ALL = `
config:
  adminRoles: { claim: nosuch }
  database: { url: 'sqlite://a.db' }
  metrics: { fields: { add: { a: nosuch } } }
  tracing: { otlpEndpoint: 'http://127.0.0.1:4317', fields: { add: { a: nosuch } } }
frontendPolicies:
  accessLog:
    { add: { a: nosuch }, filter: nosuch, database: { add: { a: nosuch } }, otlp: { host: 'a:1', filter: nosuch, fields: { add: { a: nosuch } } } }
`;
const OTHERS = `
config: { database: { url: 'sqlite://a.db' } }
frontendPolicies:
  tracing:
    host: 127.0.0.1:4317
    randomSampling: nosuch
    clientSampling: nosuch
    attributes: { a: nosuch }
    filter: nosuch
  networkAuthorization: { rules: [nosuch] }
  networkExtAuthz:
    host: 127.0.0.1:9
    protocol: { http: { path: nosuch, addRequestHeaders: { a: nosuch } } }
    cache: { key: [nosuch], ttl: nosuch }
gateways:
  default:
    port: 3000
    routes:
      - name: a
        matches: [{ path: { exact: /a } }]
        policies:
          authorization: { rules: [nosuch] }
          localRateLimit: [{ maxTokens: 1, tokensPerFill: 1, fillInterval: 1s, key: nosuch }]
          apiKey: { mode: strict, keys: [{ key: $KEY }], location: { expression: nosuch } }
          jwtAuth: { mode: strict, issuer: a, jwks: '{"keys":[]}', location: { expression: nosuch } }
          basicAuth:
            { mode: strict, htpasswd: 'a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=', authorizationLocation: { expression: nosuch } }
          extAuthz:
            host: 127.0.0.1:9
            protocol:
              http:
                path: nosuch
                addRequestHeaders: { a: nosuch }
                redirect: nosuch
                body: nosuch
                metadata: { a: nosuch }
          transformations:
            request: { set: { a: nosuch }, add: { a: nosuch }, replace: nosuch, body: nosuch, metadata: { a: nosuch } }
            response: { set: { a: nosuch }, add: { a: nosuch }, replace: nosuch, body: nosuch, metadata: { a: nosuch } }
          remoteRateLimit: { host: '127.0.0.1:9', domain: a, descriptors: [{ entries: [{ key: a, value: nosuch }], cost: nosuch, limitOverride: nosuch }] }
          retry: { codes: [503], precondition: nosuch, condition: nosuch }
          delay: { duration: nosuch }
          backendAuth:
            oauthTokenExchange:
              host: 127.0.0.1:9
              subjectToken: { source: { expression: nosuch } }
              actorToken: { source: { expression: nosuch } }
              additionalParams: { a: nosuch }
          directResponse: { status: 200, bodyExpression: nosuch, headers: { a: nosuch } }
      - name: b
        policies:
          extAuthz: { host: '127.0.0.1:9', protocol: { http: {} }, metadata: { a: nosuch } }
          extProc:
            host: 127.0.0.1:9
            metadataContext: { a: { b: nosuch } }
            requestAttributes: { a: nosuch }
            responseAttributes: { a: nosuch }
          mcpAuthorization: { rules: [nosuch] }
          mcpGuardrails:
            processors:
              - { kind: webhook, host: '127.0.0.1:9', headers: { a: nosuch } }
              - { kind: remote, host: '127.0.0.1:9', metadata: { a: nosuch } }
          mcpAuthentication:
            issuer: https://idp.example
            audiences: [a]
            jwks: { url: 'https://idp.example/jwks' }
            authorizationLocation: { expression: nosuch }
        backends: [{ mcp: { targets: [{ name: a, mcp: { host: 'http://127.0.0.1:9/mcp' } }] } }]
      - name: e
        matches: [{ path: { exact: /e } }]
        backends: [{ dynamic: { target: nosuch } }]
      - name: c
        policies:
          backendAuth:
            crossAppAccess:
              identityProvider: { host: '127.0.0.1:9', clientAuth: { clientId: a, clientSecret: b } }
              resourceAuthorizationServer: { host: '127.0.0.1:9', clientAuth: { clientId: a, clientSecret: b } }
              audience: a
              subjectToken: { source: { expression: nosuch } }
          extAuthz: { host: '127.0.0.1:9', protocol: { grpc: { metadata: { a: nosuch } } }, cache: { key: [nosuch], ttl: nosuch } }
          ai:
            transformations: { user: nosuch }
            finalTransformations: { user: nosuch }
            promptGuard:
              request: [{ webhook: { target: { host: '127.0.0.1:9' }, headers: { a: nosuch } } }]
              response: [{ webhook: { target: { host: '127.0.0.1:9' }, headers: { a: nosuch } } }]
        backends: [{ ai: { name: a, provider: { openAI: {} } } }]
      - name: d
        policies:
          backendAuth: { crossAppAccess: { identityProvider: { host: '127.0.0.1:9', clientAuth: { clientId: a, clientSecret: b } }, resourceAuthorizationServer: { host: '127.0.0.1:9', clientAuth: { clientId: a, clientSecret: b } }, audience: a, subjectToken: { source: { expression: nosuch } } } }
          extAuthz: { conditional: [{ condition: nosuch, host: '127.0.0.1:9', protocol: { http: {} } }] }
          extProc: { conditional: [{ condition: nosuch, host: '127.0.0.1:9' }] }
          localRateLimit: { conditional: [{ condition: nosuch, maxTokens: 1, tokensPerFill: 1, fillInterval: 1s }] }
          remoteRateLimit: { conditional: [{ condition: nosuch, host: '127.0.0.1:9', domain: a, descriptors: [{ entries: [{ key: a, value: '1' }] }] }] }
          transformations: { conditional: [{ condition: nosuch, request: { remove: [a] } }] }
          directResponse: { conditional: [{ condition: nosuch, status: 200 }, { status: 201 }] }
mcp:
  port: 3001
  targets: [{ name: a, mcp: { host: 'http://127.0.0.1:9/mcp' } }]
  bundles: [{ name: b, targets: [a], when: nosuch }]
llm:
  port: 4000
  policies: { budgets: [{ name: a, limit: 10USD/day, key: nosuch }] }
  models:
    - name: a
      provider: echo
      transformation: { user: nosuch }
      health: { unhealthyExpression: nosuch }
      guardrails:
        request: [{ webhook: { target: { host: '127.0.0.1:9' }, headers: { a: nosuch } } }]
        response: [{ webhook: { target: { host: '127.0.0.1:9' }, headers: { a: nosuch } } }]
    - name: b
      provider: openAI
      authorization: { rules: [nosuch] }
      auth:
        oauthTokenExchange:
          host: 127.0.0.1:9
          subjectToken: { source: { expression: nosuch } }
          actorToken: { source: { expression: nosuch } }
          additionalParams: { a: nosuch }
    - name: c
      provider: openAI
      auth: { crossAppAccess: { identityProvider: { host: '127.0.0.1:9', clientAuth: { clientId: a, clientSecret: b } }, resourceAuthorizationServer: { host: '127.0.0.1:9', clientAuth: { clientId: a, clientSecret: b } }, audience: a, subjectToken: { source: { expression: nosuch } } } }
  virtualModels:
    - name: v
      routing: { conditional: { targets: [{ model: a, when: nosuch }, { model: a }] } }
`;

test('each expression key offers the variables of its scope', async () => {
  const offered = new Map<string, string>();
  const others: string[] = [];
  for (const text of [ALL, OTHERS]) {
    const env = { KEY: 'k' };
    for (const { code, message, path, help } of await findProblems(
      loadConfigText(text, 'gateway.yaml', env),
      { folder: '/', env },
    )) {
      if (code === 'AGW0202') offered.set(keyOf(path), /available here: (.*)$/.exec(help ?? '')?.[1] ?? '');
      else if (!/^AGW03/.test(code)) others.push(`${code} ${path.join('.')} ${message}`);
    }
  }
  expect(others).toEqual([]);
  const declared = expressionScopes.flatMap((scope) =>
    scope.keys.map((key) => [key, scope.roots.join(', ')] as const),
  );
  expect(Object.fromEntries(offered)).toEqual(Object.fromEntries(declared));
});

test('each key that the schema describes as CEL is listed', () => {
  const described = [...keysAbout(configJsonSchema(), '')].map(asPolicyKey);
  expect(described.filter((path) => !keys.some((key) => path.endsWith(`.${key}`)))).toEqual([]);
  expect(described.length).toBeGreaterThan(keys.length);
});

/** The path as documented: a policy has the same settings at every place, and in each entry of `conditional`. */
function asPolicyKey(path: string): string {
  return path
    .replace(/^\.gateways\.\*(?:\.listeners\[\])?(?!\.(?:listeners|routes)\b)/, '.policies')
    .replace('.policies[].policy.', '.policies.')
    .replace(/.*\.llm\.models\[\]\.auth\./, '.policies.backendAuth.')
    .replace(/.*\.llm\.models\[\]\.authorization\./, '.policies.authorization.')
    .replace('.localRateLimit.conditional[].key', '.localRateLimit[].key')
    .replace(/\.conditional\[\](?!\.condition$)/, '');
}

/** The listed key whose value has a problem, or the path when there is none. */
function keyOf(path: readonly (string | number)[]): string {
  const written = path.reduce<string>(
    (before, part) => (typeof part === 'number' ? `${before}[]` : `${before}.${part}`),
    '',
  );
  return keys.find((key) => written.includes(`.${key}`)) ?? written;
}

interface Schema {
  readonly description?: string;
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

function* keysAbout(node: Schema, path: string): Generator<string> {
  if (/\bCEL\b/.test(node.description ?? '')) yield path;
  for (const [name, child] of Object.entries(node.properties ?? {}))
    yield* keysAbout(child, `${path}.${name}`);
  for (const child of [...(node.anyOf ?? []), ...(node.oneOf ?? [])]) yield* keysAbout(child, path);
  if (node.items !== undefined) yield* keysAbout(node.items, `${path}[]`);
  if (typeof node.additionalProperties === 'object') yield* keysAbout(node.additionalProperties, `${path}.*`);
}
