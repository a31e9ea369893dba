import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { gateway } from '../../../kit/gateway.ts';
import { startIdp } from '../../../kit/idp.ts';
import { call } from '../../../kit/sign-in.ts';

const page = readFileSync(fileURLToPath(new URL('../../../../docs/sign-in.md', import.meta.url)), 'utf8');

test("the sign-in documentation's configuration requires a token of its issuer", async () => {
  const [, yaml = ''] = /```yaml\n(.*?)```/s.exec(page) ?? [];
  await using idp = await startIdp();
  const here = yaml.replace('port: 3000', 'port: 0').replace(/issuer: \S+/, `issuer: ${idp.issuer}`);
  expect(here).not.toBe(yaml);
  await using guarded = await gateway(here);
  const reply = await call(guarded);
  expect(reply.status).toBe(401);
  expect(reply.headers['www-authenticate']).toContain('"https://tools.example.com/.well-known/');
  expect((await call(guarded, idp.token())).status).toBe(403);
});
