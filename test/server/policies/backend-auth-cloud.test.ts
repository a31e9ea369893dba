import { describe, expect, test } from 'vitest';
import { NO_AWS, signature, signatureIn } from '../../kit/aws.ts';
import { azureIdentity } from '../../kit/azure-identity.ts';
import { environment } from '../../kit/environment.ts';
import { gateway } from '../../kit/gateway.ts';
import { answering, CHAT, chat, llmProvider } from '../../kit/llm-provider.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream, type Received } from '../../kit/upstream.ts';

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET, region: 'us-west-2' };
const through = (upstream: HttpUpstream, backendAuth: object, more: object = {}) =>
  proxyGateway(upstream.address, { backendAuth }, more);
const refusal = async (backendAuth: object): Promise<string> => {
  const config = routesConfig([{ policies: { backendAuth }, backends: [{ host: '127.0.0.1:9' }] }]);
  return gateway(config).then(
    async (gate) => {
      await gate[Symbol.asyncDispose]();
      return '';
    },
    (error: unknown) => String(error),
  );
};

describe('backendAuth.aws', () => {
  test('requests are signed with the configured keys, over path, query and body', async () => {
    using _env = environment(NO_AWS);
    await using upstream = await httpUpstream();
    await using gate = await through(upstream, {
      aws: { ...KEYS, sessionToken: 'temporary', serviceName: 'execute-api' },
    });
    await send(`${gate.url}/a%20b/c?x=1`, {
      method: 'POST',
      body: 'Grüß Gott',
      headers: { authorization: 'Bearer of-the-client', 'content-type': 'text/plain' },
    });
    const received = upstream.received[0] as Received;
    expect(received.headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/us-west-2\/execute-api\/aws4_request, /,
    );
    expect(received.headers['x-amz-security-token']).toBe('temporary');
    expect(signatureIn(received)).toBe(signature(received, SECRET));
    expect(signature({ ...received, body: 'other' }, SECRET)).not.toBe(signatureIn(received));
    expect([...gate.accessLog, ...gate.log].join('')).not.toContain(SECRET);
  });

  test('without keys, requests are signed with the credentials of the environment', async () => {
    using _env = environment({
      ...NO_AWS,
      AWS_ACCESS_KEY_ID: 'AKIDMACHINE',
      AWS_SECRET_ACCESS_KEY: SECRET,
    });
    await using upstream = await httpUpstream();
    await using gate = await through(upstream, { aws: { serviceName: 'lambda', region: 'eu-west-1' } });
    await send(gate.url);
    const received = upstream.received[0] as Received;
    expect(received.headers['authorization']).toContain('Credential=AKIDMACHINE/');
    expect(signatureIn(received)).toBe(signature(received, SECRET));
  });

  test('a role is assumed with its session name and tags, and its credentials sign requests', async () => {
    await using sts = await httpUpstream((_, response) =>
      response
        .writeHead(200, { 'content-type': 'text/xml' })
        .end(
          `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>AKIDOFROLE</AccessKeyId><SecretAccessKey>${SECRET}</SecretAccessKey><SessionToken>of-the-role</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
        ),
    );
    using _env = environment({
      ...NO_AWS,
      AWS_ACCESS_KEY_ID: 'AKIDMACHINE',
      AWS_SECRET_ACCESS_KEY: 'of-the-machine',
      AWS_ENDPOINT_URL_STS: `http://${sts.address}`,
    });
    await using upstream = await httpUpstream();
    const roleArn = 'arn:aws:iam::123456789012:role/reader';
    const assumeRole = { roleArn, sessionName: 'of-the-gateway', tags: [{ key: 'team', value: 'red' }] };
    await using gate = await through(upstream, {
      aws: { serviceName: 'lambda', region: 'eu-west-1', assumeRole },
    });
    expect((await send(gate.url)).status).toBe(200);
    expect(Object.fromEntries(new URLSearchParams(sts.received[0]?.body))).toMatchObject({
      Action: 'AssumeRole',
      RoleArn: roleArn,
      RoleSessionName: 'of-the-gateway',
      'Tags.member.1.Key': 'team',
      'Tags.member.1.Value': 'red',
    });
    const received = upstream.received[0] as Received;
    expect(received.headers['authorization']).toContain('Credential=AKIDOFROLE/');
    expect(received.headers['x-amz-security-token']).toBe('of-the-role');
    expect(signatureIn(received)).toBe(signature(received, SECRET));
  });

  test('a body that is too large to be held is refused with 413, and not sent unsigned', async () => {
    using _env = environment(NO_AWS);
    await using upstream = await httpUpstream();
    await using gate = await through(
      upstream,
      { aws: KEYS },
      { frontendPolicies: { http: { maxBufferSize: 1000 } } },
    );
    const reply = await send(gate.url, { method: 'POST', body: 'x'.repeat(200_000) });
    expect(reply.status).toBe(413);
    expect(reply.text).toContain('1000 bytes');
    expect(upstream.received).toEqual([]);
  });

  test.each([
    [{ accessKeyId: 'A', region: 'us-east-1' }, '`accessKeyId` needs `secretAccessKey`'],
    [{ secretAccessKey: 'A', region: 'us-east-1' }, '`secretAccessKey` needs `accessKeyId`'],
    [{ sessionToken: 'A', region: 'us-east-1' }, '`sessionToken` needs `accessKeyId`'],
    [
      { ...KEYS, assumeRole: { roleArn: 'arn:aws:iam::123456789012:role/a' } },
      'a role is assumed with the credentials of the machine',
    ],
    [{ accessKeyId: 'A', secretAccessKey: 'B' }, '`aws` needs `region`'],
  ])('aws %j is refused', async (aws, message) => {
    using _env = environment({ ...NO_AWS, AWS_REGION: undefined, AWS_DEFAULT_REGION: undefined });
    expect(await refusal({ aws })).toContain(message);
  });
});

describe('backendAuth.gcp', () => {
  const NO_GOOGLE = {
    GOOGLE_APPLICATION_CREDENTIALS: undefined,
    CLOUDSDK_CONFIG: '/dev/null/none',
    HOME: '/dev/null/none',
    GCE_METADATA_IP: undefined,
  };
  const idToken = (audience: string): string =>
    [
      'e30',
      Buffer.from(JSON.stringify({ aud: audience, exp: 4_000_000_000 })).toString('base64url'),
      's',
    ].join('.');
  const metadataServer = (): Promise<HttpUpstream> =>
    httpUpstream((_, response, { target }) => {
      const head = { 'content-type': 'application/json', 'metadata-flavor': 'Google' };
      response.writeHead(200, head);
      const audience = new URL(target, 'http://m').searchParams.get('audience');
      if (target.includes('/identity')) return response.end(idToken(audience ?? ''));
      if (!target.includes('/token')) return response.end('default');
      return response.end(JSON.stringify({ access_token: 'ya29.t', expires_in: 3600, token_type: 'Bearer' }));
    });
  const ambient = ({ address }: HttpUpstream) => ({
    ...NO_GOOGLE,
    GCE_METADATA_HOST: address,
    METADATA_SERVER_DETECTION: 'assume-present',
  });

  test.each([
    ['an access token by default', {}, 'Bearer ya29.t'],
    ['an access token, in the spelling of the documentation', { type: 'AccessToken' }, 'Bearer ya29.t'],
    [
      'an ID token for an audience',
      { type: 'idToken', audience: 'https://run.example' },
      `Bearer ${idToken('https://run.example')}`,
    ],
  ])('the backend gets %s', async (_, gcp, expected) => {
    await using metadata = await metadataServer();
    using _env = environment(ambient(metadata));
    await using upstream = await httpUpstream();
    await using gate = await through(upstream, { gcp });
    const reply = await send(gate.url, { headers: { authorization: 'Bearer of-the-client' } });
    expect(reply.status).toBe(200);
    expect(upstream.received[0]?.headers.authorization).toBe(expected);
  });

  test('an ID token without a configured audience is for the host of the backend', async () => {
    await using metadata = await metadataServer();
    using _env = environment(ambient(metadata));
    await using upstream = await httpUpstream();
    await using gate = await proxyGateway(`localhost:${upstream.port}`, {
      backendAuth: { gcp: { type: 'idToken' } },
    });
    await send(gate.url);
    expect(upstream.received[0]?.headers.authorization).toBe(
      `Bearer ${idToken(`https://localhost:${upstream.port}`)}`,
    );
  });

  test('a missing credential is answered with 503, whose log line says where it was looked for', async () => {
    using _env = environment({ ...NO_GOOGLE, METADATA_SERVER_DETECTION: 'none' });
    await using upstream = await httpUpstream();
    await using gate = await through(upstream, { gcp: {} });
    expect((await send(gate.url)).status).toBe(503);
    expect((await gate.accessLine(1))['error.detail']).toContain('GOOGLE_APPLICATION_CREDENTIALS');
    expect(upstream.received).toEqual([]);
  });

  test.each([
    [{ audience: 'https://a.example' }, 'only an `idToken` has an audience'],
    [{ credential: 's3cret' }, 'the credential is not the text of a credentials file of Google Cloud'],
  ])('gcp %j is refused', async (gcp, message) => {
    const text = await refusal({ gcp });
    expect(text).toContain(message);
    expect(text).not.toContain('s3cret');
  });
});

describe('backendAuth.azure', () => {
  test('the backend gets a token of the managed identity that is configured', async () => {
    using identity = await azureIdentity();
    for (const [managedIdentity, token, asked] of [
      [{}, 'of-the-system', {}],
      [{ userAssignedIdentity: { clientId: 'c-1' } }, 'of-c-1', { client_id: 'c-1' }],
      [{ userAssignedIdentity: { objectId: 'o-1' } }, 'of-the-system', { object_id: 'o-1' }],
      [{ userAssignedIdentity: { resourceId: '/r/1' } }, 'of-the-system', { mi_res_id: '/r/1' }],
    ] as const) {
      await using upstream = await httpUpstream();
      await using gate = await through(upstream, { azure: { explicitConfig: { managedIdentity } } });
      const reply = await send(gate.url, { headers: { authorization: 'Bearer of-the-client' } });
      expect(reply.status).toBe(200);
      expect(upstream.received[0]?.headers.authorization).toBe(`Bearer ${token}`);
      const { searchParams } = new URL(identity.received.at(-1)?.target ?? '', 'http://machine');
      expect(Object.fromEntries(searchParams)).toMatchObject({
        resource: expect.stringMatching(/^https:/),
        ...asked,
      });
    }
  });

  test.each([
    [{}, 'expected exactly one of `implicit`, `developerImplicit`, `explicitConfig`'],
    [{ explicitConfig: {} }, 'expected exactly one of `clientSecret`, `managedIdentity`, `workloadIdentity`'],
  ])('azure %j is refused', async (azure, message) => {
    expect(await refusal({ azure })).toContain(message);
  });
});

describe('cloud credentials of a route or backend with models', () => {
  const CONVERSED = JSON.stringify({
    output: { message: { content: [{ text: 'Hello.' }], role: 'assistant' } },
    stopReason: 'end_turn',
    usage: { inputTokens: 12, outputTokens: 7, totalTokens: 19 },
  });
  const { region: _region, ...keys } = KEYS;
  const bedrock = ({ address }: HttpUpstream) => ({
    name: 'b',
    provider: { bedrock: { model: 'm', region: 'eu-west-1' } },
    hostOverride: address,
  });

  test.each([
    ['a route', { policies: { backendAuth: { aws: keys } } }, {}],
    ['a backend', {}, { policies: { backendAuth: { aws: keys } } }],
  ])('aws of %s signs for the region of the provider, with its keys only', async (_, route, backend) => {
    using _env = environment({ ...NO_AWS, AWS_REGION: undefined, AWS_DEFAULT_REGION: undefined });
    await using provider = await llmProvider(answering(CONVERSED));
    const config = routesConfig([{ ...route, backends: [{ ai: bedrock(provider), ...backend }] }]);
    await using gate = await gateway(config);
    expect((await chat(gate, CHAT, { authorization: 'Bearer of-the-client' })).status).toBe(200);
    const received = provider.received[0] as Received;
    expect(received.headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/bedrock\//,
    );
    expect(signatureIn(received)).toBe(signature(received, SECRET));
  });

  test('azure of a route gives the provider a token instead of the credentials of the client', async () => {
    using _identity = await azureIdentity();
    await using provider = await llmProvider();
    const backendAuth = { azure: { explicitConfig: { managedIdentity: {} } } };
    const ai = { name: 'p', provider: { openAI: {} }, hostOverride: provider.address };
    await using gate = await gateway(routesConfig([{ policies: { backendAuth }, backends: [{ ai }] }]));
    const reply = await chat(gate, CHAT, { authorization: 'Bearer of-the-client', 'x-api-key': 'client' });
    expect(reply.status).toBe(200);
    expect(provider.received[0]?.headers).toMatchObject({ authorization: 'Bearer of-the-system' });
    expect(JSON.stringify(provider.received)).not.toContain('client');
  });

  test('the credential of a model takes precedence', async () => {
    await using provider = await llmProvider();
    const baseUrl = `http://${provider.address}/v1`;
    const llm = { models: [{ name: '*', provider: 'openAI', params: { baseUrl, apiKey: 'model-key' } }] };
    const config = routesConfig([{ policies: { backendAuth: { aws: KEYS } }, backends: [{ llm }] }]);
    await using gate = await gateway(config);
    expect((await chat(gate)).status).toBe(200);
    expect(provider.received[0]?.headers).toMatchObject({ authorization: 'Bearer model-key' });
  });

  test('aws without a region is refused if a provider has none either', async () => {
    using _env = environment({ ...NO_AWS, AWS_REGION: undefined, AWS_DEFAULT_REGION: undefined });
    const ai = { name: 'p', provider: { openAI: {} } };
    const config = routesConfig([{ policies: { backendAuth: { aws: keys } }, backends: [{ ai }] }]);
    await expect(gateway(config)).rejects.toThrow('`aws` needs `region`');
  });
});
