import { describe, expect, test } from 'vitest';
import { awsScopeOf } from '../../../../../src/server/credentials/cloud/aws.ts';
import { NO_AWS, signature, signatureIn } from '../../../../kit/aws.ts';
import { azureIdentity } from '../../../../kit/azure-identity.ts';
import { mcpConfig } from '../../../../kit/config.ts';
import { environment } from '../../../../kit/environment.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, openSession, post } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Received } from '../../../../kit/mcp-upstream.ts';
import { openApi } from '../../../../kit/openapi.ts';
import { until } from '../../../../kit/until.ts';
import { httpUpstream, type Received as Requested } from '../../../../kit/upstream.ts';

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET };
const CLIENT = { authorization: 'Bearer mine', 'x-amz-security-token': 'of-the-client' };
const through = (up: McpUpstream, backendAuth: object, host = up.url) =>
  gateway(mcpConfig([{ name: 'up', mcp: { host }, policies: { backendAuth } }]));

const requested = ({ verb, path, headers, text }: Received): Requested => ({
  method: verb,
  target: path,
  headers,
  rawHeaders: [],
  body: text,
});

describe('backendAuth.aws of an MCP target', () => {
  // agentic-community/mcp-gateway-registry#734: a signature is of one request, and no header for all of them.
  test('each request is signed with its own method, path and body', async () => {
    using _env = environment(NO_AWS);
    await using up = await mcpUpstream({
      script: ({ path }, response) => {
        if (!path.startsWith('/mcp?')) return false;
        // aws/mcp-proxy-for-aws#362: a request that is redirected needs another signature.
        response.writeHead(308, { location: '/moved' }).end();
        return true;
      },
    });
    const aws = { ...KEYS, region: 'eu-west-1', serviceName: 'bedrock-agentcore' };
    await using gate = await through(up, { aws }, `${up.url}?v=1`);
    const session = await openSession(`${gate.url}/mcp`, CLIENT);
    await using _stream = await openEvents(session.url, { session: session.id, headers: CLIENT });
    await until(() => up.streams.length === 1);
    await session.request('tools/call', { name: 'say', arguments: { message: 'Grüß Gott' } });
    await session.end();
    const paths = up.received.map(({ path }) => path);
    expect(new Set(paths)).toEqual(new Set(['/mcp?v=1', '/moved']));
    expect(new Set(up.received.map(({ verb }) => verb))).toEqual(new Set(['POST', 'GET', 'DELETE']));
    for (const received of up.received) {
      expect(received.headers['authorization']).toMatch(
        /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/bedrock-agentcore\/aws4_request, /,
      );
      // The kit hashes bytes.
      const body = Buffer.from(received.text, 'utf8').toString('latin1');
      const own = { ...requested(received), body };
      expect(signatureIn(own)).toBe(signature(own, SECRET));
      expect(received.headers['x-amz-security-token']).toBeUndefined();
    }
    expect(`${gate.log.join('')}${gate.accessLog.join('')}`).not.toContain(SECRET);
  });

  test('the request of an OpenAPI target is signed, with its body', async () => {
    using _env = environment(NO_AWS);
    await using api = await httpUpstream((_, response) => response.end('{}'));
    const content = { 'application/json': { schema: { type: 'object' } } };
    const schema = openApi({
      '/put': { post: { operationId: 'put', requestBody: { content }, responses: {} } },
    });
    const openapi = { host: `http://${api.address}`, schema: JSON.stringify(schema) };
    const policies = { backendAuth: { aws: { ...KEYS, region: 'eu-west-1', serviceName: 'execute-api' } } };
    await using gate = await gateway(mcpConfig([{ name: 'api', openapi, policies }]));
    const session = await openSession(`${gate.url}/mcp`, CLIENT);
    await session.request('tools/call', { name: 'put', arguments: { body: { a: 1 } } });
    const [received] = api.received;
    expect(received?.body).toBe('{"a":1}');
    expect(received && signatureIn(received)).toBe(received && signature(received, SECRET));
    await session.end();
  });

  test('without credentials, nothing is sent, and the log says where they were looked for', async () => {
    using _env = environment(NO_AWS);
    await using up = await mcpUpstream();
    await using gate = await through(up, { aws: { region: 'eu-west-1', serviceName: 'lambda' } });
    const { error } = await post(`${gate.url}/mcp`, INITIALIZE, CLIENT);
    expect(error.message).toContain(
      'target "up": the gateway has no credential for the server: the gateway has no valid credentials for the provider',
    );
    expect(gate.log.join('')).toContain('AWS_ACCESS_KEY_ID');
    expect(up.received).toEqual([]);
  });

  test.each([
    ['bedrock-agentcore.us-east-1.amazonaws.com', { service: 'bedrock-agentcore', region: 'us-east-1' }],
    [
      'gw-1.gateway.bedrock-agentcore.eu-central-1.amazonaws.com:443',
      { service: 'bedrock-agentcore', region: 'eu-central-1' },
    ],
    ['a1.execute-api.us-gov-west-1.amazonaws.com', { service: 'execute-api', region: 'us-gov-west-1' }],
    ['a1.execute-api.cn-north-1.amazonaws.com.cn', { service: 'execute-api', region: 'cn-north-1' }],
    ['execute-api.eu-west-1.amazonaws.com.example', undefined],
    ['mcp.example.com', undefined],
  ])('the host name %s says %j', (host, scope) => expect(awsScopeOf(host)).toEqual(scope));

  test.each<[string, RegExp | undefined]>([
    ['http://127.0.0.1:9/mcp', /backendAuth\.aws: `aws` needs `region`/],
    ['https://bedrock-agentcore.us-east-1.amazonaws.com/mcp', undefined],
  ])('a region is needed for %s unless the host name has one', async (host, problem) => {
    using _env = environment({ ...NO_AWS, AWS_REGION: undefined, AWS_DEFAULT_REGION: undefined });
    const text = mcpConfig([{ name: 'up', mcp: { host }, policies: { backendAuth: { aws: KEYS } } }]);
    if (problem !== undefined) await expect(gateway(text)).rejects.toThrow(problem);
    else await (await gateway(text)).close();
  });
});

test('backendAuth.azure of an MCP target sends the token of the machine', async () => {
  using _identity = await azureIdentity();
  await using up = await mcpUpstream();
  await using gate = await through(up, { azure: { explicitConfig: { managedIdentity: {} } } });
  await (await openSession(`${gate.url}/mcp`, CLIENT)).end();
  expect(new Set(up.received.map(({ headers }) => headers['authorization']))).toEqual(
    new Set(['Bearer of-the-system']),
  );
});

test('backendAuth.gcp of an MCP target sends an ID token for its host', async () => {
  const claims = { aud: 'https://run.example', exp: 4_000_000_000 };
  const idToken = ['e30', Buffer.from(JSON.stringify(claims)).toString('base64url'), 's'].join('.');
  await using metadata = await httpUpstream((_, response, { target }) =>
    response
      .writeHead(200, { 'content-type': 'application/json', 'metadata-flavor': 'Google' })
      .end(target.includes('/identity') ? idToken : 'default'),
  );
  using _env = environment({
    GOOGLE_APPLICATION_CREDENTIALS: undefined,
    CLOUDSDK_CONFIG: '/dev/null/none',
    HOME: '/dev/null/none',
    GCE_METADATA_IP: undefined,
    GCE_METADATA_HOST: metadata.address,
    METADATA_SERVER_DETECTION: 'assume-present',
  });
  await using up = await mcpUpstream();
  await using gate = await through(up, { gcp: { type: 'idToken' } });
  await (await openSession(`${gate.url}/mcp`, CLIENT)).end();
  expect(new Set(up.received.map(({ headers }) => headers['authorization']))).toEqual(
    new Set([`Bearer ${idToken}`]),
  );
  const asked = metadata.received.find(({ target }) => target.includes('/identity'))?.target ?? '';
  expect(new URL(asked, 'http://m').searchParams.get('audience')).toBe(`https://127.0.0.1:${up.port}`);
});
