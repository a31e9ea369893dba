import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { basic, linkIn, protectedServer, signInGateway, UserBrowser } from '../../kit/user-sign-in.ts';

const INFO = { name: 'client', version: '1' };
const OPENS_LINKS = { capabilities: { elicitation: { url: {} } } };
const SAY = { name: 'say', arguments: { message: 'hello' } };
const init = { requestInit: { headers: basic('ann') } };
const thrown = (error: unknown): { text: string; code: unknown } => ({
  text: JSON.stringify(error),
  code: (error as { code?: unknown }).code,
});

test('the official client of the first generation gets the link, and hears of the tools', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer);
  await using gate = await signInGateway(folder.path, { github: server });
  const client = new Client1(INFO, OPENS_LINKS);
  const changed = Promise.withResolvers<void>();
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.resolve());
  await client.connect(new Transport1(new URL(`${gate.url}/mcp`), init));
  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  expect(await names()).toEqual(['gateway_sign_in']);
  const refused = await client.callTool(SAY).catch(thrown);
  expect(refused).toMatchObject({ code: -32042 });
  await new UserBrowser(basic('ann')).signIn(linkIn(refused as { text: string }));
  await changed.promise;
  expect(await names()).toContain('say');
  expect((await client.callTool(SAY)).isError).toBeUndefined();
  await client.close();
});

test('the official client of the second generation shows the link of the tool', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer);
  await using gate = await signInGateway(folder.path, { github: server });
  const client = new Client2(INFO);
  await client.connect(new Transport2(new URL(`${gate.url}/mcp`), init));
  const refused = await client.callTool({ name: 'gateway_sign_in', arguments: {} });
  expect(refused.isError).toBeUndefined();
  await new UserBrowser(basic('ann')).signIn(linkIn({ text: JSON.stringify(refused) }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('say');
  expect((await client.callTool(SAY)).isError).toBeUndefined();
  await client.close();
});
