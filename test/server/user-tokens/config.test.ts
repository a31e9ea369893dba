import { expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { PASSWORDS, signInConfig } from '../../kit/user-sign-in.ts';

type Settings = NonNullable<Parameters<typeof signInConfig>[2]>;

/** The problems of a configuration, after `change`. */
async function problems(
  settings: Settings,
  change: (text: string) => string = (text) => text,
): Promise<string[]> {
  await using server = await mcpUpstream();
  const { config } = signInConfig(3000, { github: server }, settings);
  const loaded = loadConfigText(change(JSON.stringify(config)), 'gateway.yaml', {});
  const found = await findProblems(loaded, { folder: '/', env: {} });
  return found.filter(({ code }) => code !== 'AGW0302').map(({ message }) => message);
}

test('a configuration for sign-ins of users has no problems', async () => {
  expect(await problems({})).toEqual([]);
  expect(await problems({ pagePolicies: {}, signIn: { users: 'code' } })).toEqual([]);
});

test.each([
  [{ config: { session: {} } }, '`oauth` needs `config.session.key`'],
  [{ config: { database: undefined } }, '`oauth` needs `config.database`'],
  [{ config: { mcp: {} } }, '`oauth` needs `config.mcp.signIn`'],
  [{ pagePolicies: {} }, 'no policy that knows who opens the page'],
  [{ oauth: { clientSecret: 'secret' } }, '`clientSecret` needs `clientId`'],
  [{ signIn: { url: 'http://tools.example.com/sign-in' } }, 'http only on this machine'],
  [{ signIn: { url: 'https://tools.example.com/' } }, 'with a path'],
] satisfies [Settings, string][])('%j is refused or warned of: %s', async (settings, message) => {
  expect(await problems({ policies: PASSWORDS, ...settings })).toContainEqual(
    expect.stringContaining(message),
  );
});

test('links that lead nowhere are warned of', async () => {
  const without = (text: string) => text.replace('"mcpSignIn":{}', '"directResponse":{}');
  expect(await problems({}, without)).toEqual([expect.stringContaining('lead nowhere')]);
});

test('oauth is for targets of MCP over HTTP, and a method of its own', async () => {
  const sse = (text: string) => text.replace('{"name":"github","mcp":', '{"name":"github","sse":');
  expect(await problems({}, sse)).toContainEqual(expect.stringContaining('`oauth` is for targets `mcp`'));
  const both = (text: string) => text.replace('"oauth":{}', '"oauth":{},"key":"k"');
  expect(await problems({}, both)).toContainEqual(expect.stringContaining('exactly one of'));
});
