// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of configurations.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { INITIALIZE, openSession, post } from '../kit/mcp.ts';
import { service } from '../kit/process.ts';
import { until } from '../kit/until.ts';

// `mcp_servers` of LiteLLM: what a target sends, for each `auth_type` (docs.litellm.ai/docs/mcp_authentication, mcp_oauth).

/** What `agctl init` makes of one server at https://a.example/mcp with these members. The result must be valid. */
async function imported(server: object, url = 'https://a.example/mcp') {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  const model = {
    model_name: 'm',
    litellm_params: { model: 'openai/x', api_key: 'os.environ/OPENAI_API_KEY' },
  };
  writeFileSync(
    join(cwd, 'config.yaml'),
    JSON.stringify({ model_list: [model], mcp_servers: { a: { url, ...server } } }),
  );
  const options = { cwd, env: { HOME: cwd } };
  const made = await cli(['init', 'out', '--yes', '--from', 'config.yaml'], options);
  expect([made.code, made.stderr]).toEqual([0, '']);
  const validated = await cli(['config', 'validate', '-f', 'out/gateway.yaml'], options);
  expect(validated.stdout + validated.stderr).not.toContain('error[');
  const [target] = parse(readFileSync(join(cwd, 'out/gateway.yaml'), 'utf8')).mcp.targets;
  const { OPENAI_API_KEY: _, ...variables } = parseEnv(readFileSync(join(cwd, 'out/gateway.env'), 'utf8'));
  return { target, policies: target.policies, variables, printed: made.stdout };
}

const inHeader = (name: string, key: string) => ({
  backendAuth: { credentials: [{ key, location: { header: { name } } }] },
});

test.each([
  ['api_key', 'os.environ/A_KEY', inHeader('X-API-Key', '${A_KEY}'), { A_KEY: 'change-me' }],
  ['api_key', 'of-ann', inHeader('X-API-Key', '${A_X_API_KEY}'), { A_X_API_KEY: 'of-ann' }],
  ['bearer_token', 'os.environ/A_KEY', { backendAuth: { key: '${A_KEY}' } }, { A_KEY: 'change-me' }],
  ['token', 'os.environ/A_KEY', inHeader('Authorization', 'token ${A_KEY}'), { A_KEY: 'change-me' }],
  ['authorization', 'os.environ/A_KEY', inHeader('Authorization', '${A_KEY}'), { A_KEY: 'change-me' }],
  ['basic', 'ann:pass', inHeader('Authorization', 'Basic ${A_TOKEN}'), { A_TOKEN: 'YW5uOnBhc3M=' }],
  ['none', undefined, undefined, {}],
])('auth_type %s with %s is sent', async (type, value, policies, variables) => {
  const made = await imported({ auth_type: type, auth_value: value });
  expect([made.policies, made.variables]).toEqual([policies, variables]);
  expect(made.printed).not.toContain('not imported');
});

test('static_headers are sent; extra_headers are, with all others, except Authorization', async () => {
  const static_headers = { 'X-Tenant': 'blue', 'X-Api-Key': 'os.environ/A_KEY' };
  const { policies, printed } = await imported({ static_headers, extra_headers: ['x-user'] });
  expect(policies).toEqual({
    ...inHeader('X-Api-Key', '${A_KEY}'),
    requestHeaderModifier: { set: { 'X-Tenant': 'blue' } },
  });
  expect(printed).toContain(
    '`extra_headers: x-user` of a in config.yaml: the server gets all headers of clients',
  );
  const other = await imported({ extra_headers: ['authorization'] });
  expect(other.printed).toContain(
    '`extra_headers: Authorization` of a in config.yaml: `backendAuth.passthrough` of the target',
  );
});

test('variables of the environment are references wherever they are: address, command, arguments and `env`', async () => {
  const { target, variables } = await imported({
    ...{ url: undefined, command: 'node', args: ['server.mjs', 'os.environ/A_ROOT'] },
    env: { A_TOKEN: 'os.environ/B_TOKEN', PLAIN: 'x' },
  });
  expect(target.stdio).toMatchObject({
    args: ['server.mjs', '${A_ROOT}'],
    env: { A_TOKEN: '${B_TOKEN}', PLAIN: 'x' },
  });
  expect(Object.keys(variables).sort()).toEqual(['A_ROOT', 'B_TOKEN']);
  const remote = await imported({}, 'os.environ/A_URL');
  expect(remote.target.mcp).toEqual({ host: '${A_URL}' });
});

test('aws_sigv4 is a signature, with keys as references', async () => {
  const { policies, variables, printed } = await imported({
    auth_type: 'aws_sigv4',
    aws_access_key_id: 'os.environ/AWS_ID',
    aws_secret_access_key: 'of-aws',
    aws_region_name: 'eu-west-1',
    aws_service_name: 'bedrock-agentcore',
  });
  expect(policies).toEqual({
    backendAuth: {
      aws: {
        accessKeyId: '${AWS_ID}',
        secretAccessKey: '${A_AWS_SECRET_ACCESS_KEY}',
        region: 'eu-west-1',
        serviceName: 'bedrock-agentcore',
      },
    },
  });
  expect(variables).toEqual({ AWS_ID: 'change-me', A_AWS_SECRET_ACCESS_KEY: 'of-aws' });
  expect(printed).not.toContain('not imported');
});

test('a role of aws_sigv4 is assumed', async () => {
  const roleArn = 'arn:aws:iam::123456789012:role/Tools';
  const { policies } = await imported({
    ...{ auth_type: 'aws_sigv4', aws_region_name: 'os.environ/REGION' },
    ...{ aws_role_name: roleArn, aws_session_name: 'tools' },
  });
  const assumeRole = { roleArn, sessionName: 'tools' };
  expect(policies).toEqual({ backendAuth: { aws: { region: '${REGION}', assumeRole } } });
});

test.each([
  [
    { auth_type: 'oauth2', client_id: 'x', client_secret: 'of-a', scopes: ['a'], token_url: 'https://x' },
    '`backendAuth.oauth` of the target and `config.mcp.signIn`',
  ],
  [
    {
      auth_type: 'oauth2_token_exchange',
      token_exchange_endpoint: 'https://x/t',
      audience: 'a',
      client_secret: 'of-a',
    },
    '`backendAuth.oauthTokenExchange` of the target',
  ],
  [{ auth_type: 'true_passthrough' }, '`backendAuth.passthrough` of the target'],
  [{ auth_type: 'basic', auth_value: 'os.environ/PAIR' }, 'the base64 of `user:password`'],
  [{ auth_type: 'bearer_token' }, '`auth_value` is missing'],
  [{ auth_type: 'of_tomorrow' }, '`of_tomorrow` has no counterpart'],
])('%j is named with what has its place', async (server, reason) => {
  const { policies, variables, printed } = await imported(server);
  expect([policies, variables]).toEqual([undefined, {}]);
  const [, lost = ''] = printed.split('not imported\n');
  expect(lost).toContain('`auth_type` of a in config.yaml: ');
  expect(lost).toContain(reason);
  expect(lost).not.toContain('of-a');
  expect(lost.match(/config\.yaml/g)).toHaveLength(1);
});

test('each server is alone at /mcp/NAME as in LiteLLM, other names are no path, and x-mcp-servers is refused', async () => {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  const server = {
    command: process.execPath,
    args: [join(import.meta.dirname, '../kit/everything-server.ts')],
  };
  const file = {
    model_list: [{ model_name: 'm', litellm_params: { model: 'ollama/x' } }],
    mcp_servers: { remote_Docs: server, other: { ...server, env: { A: 'b' } } },
  };
  writeFileSync(join(cwd, 'config.yaml'), JSON.stringify(file));
  const options = { cwd, env: { HOME: cwd } };
  const { stdout } = await cli(['init', '--yes', '--from', 'config.yaml'], options);
  for (const note of [
    'remote_Docs of config.yaml is the target remote-docs',
    '`remote-docs_TOOL`',
    '`x-mcp-servers`',
  ])
    expect(stdout).toContain(note);
  await using gateway = await service(['serve'], options);
  const toolsAt = async (path: string): Promise<string> => {
    const session = await openSession(`${gateway.url}${path}`);
    let text = '';
    // A server that takes longer to start joins later.
    await until(async () => {
      text = JSON.stringify(await session.request('tools/list'));
      return !text.includes('unavailableTargets');
    }, 30_000);
    return text;
  };
  const all = await toolsAt('/mcp');
  const one = await toolsAt('/mcp/remote_Docs');
  expect(all).toContain('other_test_simple_text');
  expect(one).toContain('remote-docs_test_simple_text');
  expect(one).not.toContain('other_');
  expect((await post(`${gateway.url}/mcp/nothing`, INITIALIZE)).status).toBe(404);
  expect((await post(`${gateway.url}/mcp`, INITIALIZE, { 'x-mcp-servers': 'other' })).status).toBe(403);
});
