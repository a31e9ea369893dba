import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli } from '../../../kit/cli.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { gateway } from '../../../kit/gateway.ts';
import { parseMetrics, sampleValue } from '../../../kit/open-metrics.ts';
import { collector } from '../../../kit/otlp.ts';
import { routesConfig } from '../../../kit/routes.ts';
import { send } from '../../../kit/send.ts';
import { until } from '../../../kit/until.ts';
import { watchedRoute } from '../../../kit/watched.ts';

const TEAM = `export default {
  name: 'team',
  request({ path }, { deny }) {
    if (path === '/denied') deny('not this');
    if (path === '/fails') throw new Error('broken');
    if (path === '/own') return new Response('mine');
  },
};`;

async function teamFile() {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'team.js');
  writeFileSync(file, TEAM);
  return { modules: [{ module: file }], [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

test('traces tell what a policy has done with a request', async () => {
  await using file = await teamFile();
  await using route = await watchedRoute({ modules: file.modules });
  for (const path of ['/passes', '/denied', '/fails', '/own']) await send(route.url + path);
  expect(route.of('modules').map(({ action, reason }) => `${action}: ${reason}`)).toEqual([
    'apply: team: request passes',
    'deny: team: request denies: not this',
    expect.stringMatching(/^deny: team: request fails: broken \(.*team\.js:5:\d+\)$/),
    'respond: team: request answers with 200',
  ]);
});

test('metrics count the calls of a policy, and spans show how long they took', async () => {
  await using file = await teamFile();
  await using sink = await collector('http');
  const gate = await gateway(
    routesConfig([{ policies: { modules: file.modules, directResponse: { status: 200 } } }], {
      config: { tracing: { otlpEndpoint: sink.url, otlpProtocol: 'http', randomSampling: true } },
    }),
  );
  for (const path of ['/passes', '/denied', '/fails', '/own']) await send(gate.url + path);
  await until(() => gate.accessLog.length === 4);
  const families = parseMetrics(await gate.running.metrics.render());
  const count = (outcome: string) =>
    sampleValue(families, 'gw_policy_calls_total', { policy: 'team', function: 'request', outcome });
  expect(['pass', 'deny', 'fail', 'answer'].map(count)).toEqual([1, 1, 1, 1]);
  await gate.close();
  const spans = sink.spans.filter(({ name }) => name === 'policy team');
  expect(spans.map(({ attributes }) => attributes['agctl.policy.function'])).toEqual(
    Array(4).fill('request'),
  );
  expect(spans.filter(({ status }) => status.code === 2).length).toBe(1);
});

test('config explain says what a policy in a file may have', async () => {
  const { stdout } = await cli(['config', 'explain', 'policies.modules']);
  expect(stdout).toMatch(/module\b[\s\S]*default export is the policy/);
});
