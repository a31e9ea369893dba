import { expect, test } from 'vitest';
import { NO_AWS, signature, signatureIn } from '../../kit/aws.ts';
import { environment } from '../../kit/environment.ts';
import { gateway } from '../../kit/gateway.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream, type Received } from '../../kit/upstream.ts';

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const ARN = 'arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/agent-1';
const INVOCATIONS = `/runtimes/${encodeURIComponent(ARN)}/invocations`;

const through = ({ address }: HttpUpstream, agentCore: object = {}, policies: object = {}) =>
  gateway(
    routesConfig([{ backends: [{ aws: { agentCore: { agentRuntimeArn: ARN, ...agentCore } }, policies }] }]),
    { env: { AWS_ENDPOINT_URL_BEDROCK_AGENTCORE: `http://${address}` } },
  );

test.each([
  ['the credentials of the machine', {}, 'AKIDMACHINE'],
  [
    'those of backendAuth, without a region',
    { backendAuth: { aws: { accessKeyId: 'AKIDCONFIGURED', secretAccessKey: SECRET } } },
    'AKIDCONFIGURED',
  ],
])('a request invokes the agent, signed with %s', async (_, policies, id) => {
  using _env = environment({ ...NO_AWS, AWS_ACCESS_KEY_ID: 'AKIDMACHINE', AWS_SECRET_ACCESS_KEY: SECRET });
  await using agent = await httpUpstream();
  const set = { 'X-Amzn-Bedrock-AgentCore-Runtime-User-Id': 'user-1' };
  await using gate = await through(agent, {}, { requestHeaderModifier: { set }, ...policies });
  const reply = await send(`${gate.url}/any/path?x=1`, {
    method: 'POST',
    body: '{"prompt":"Hi"}',
    headers: { authorization: 'Bearer of-the-client' },
  });
  expect(reply).toMatchObject({ status: 200, text: 'ok' });
  const received = agent.received[0] as Received;
  expect(received).toMatchObject({ method: 'POST', target: INVOCATIONS, body: '{"prompt":"Hi"}' });
  expect(received.headers['x-amzn-bedrock-agentcore-runtime-user-id']).toBe('user-1');
  expect(received.headers.authorization).toMatch(
    new RegExp(`^AWS4-HMAC-SHA256 Credential=${id}/\\d{8}/us-west-2/bedrock-agentcore/aws4_request, `),
  );
  expect(signatureIn(received)).toBe(signature(received, SECRET));
});

test('the qualifier is part of the request, and a token takes the place of the signature', async () => {
  await using agent = await httpUpstream();
  await using gate = await through(agent, { qualifier: 'v 1' }, { backendAuth: { key: 'a-token' } });
  expect((await send(gate.url)).status).toBe(200);
  expect(agent.received[0]).toMatchObject({
    target: `${INVOCATIONS}?qualifier=v%201`,
    headers: { authorization: 'Bearer a-token' },
  });
});

test('an ARN of another service is refused', async () => {
  await using agent = await httpUpstream();
  const agentRuntimeArn = 'arn:aws:bedrock:us-west-2:123456789012:runtime/a';
  await expect(through(agent, { agentRuntimeArn })).rejects.toThrow('expected an ARN such as');
});
