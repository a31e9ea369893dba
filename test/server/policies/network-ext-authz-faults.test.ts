import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { answering, grpc, holding, overHttp, send } from '../../kit/network-authz.ts';
import { httpUpstream, rawUpstream, refusingPort } from '../../kit/upstream.ts';

describe.each(['deny', 'allow'])(
  'failureMode %s of networkExtAuthz applies to a service that',
  (failureMode) => {
    const expectOutcome = async (policy: object): Promise<void> => {
      await using gate = await answering({
        networkExtAuthz: { failureMode, policies: { http: { requestTimeout: '200ms' } }, ...policy },
      });
      if (failureMode === 'allow') expect(await send(gate.url)).toMatchObject({ text: 'ok' });
      else {
        await expect(send(gate.url)).rejects.toThrow();
        expect(gate.log.join('\n')).toContain('the service could not be reached');
      }
    };
    const http = { protocol: { http: {} } };

    test('is not there', async () => {
      const host = `127.0.0.1:${await refusingPort()}`;
      await expectOutcome({ host, ...http });
      await expectOutcome({ host });
    });

    test('does not answer', async () => {
      await using silent = await holding();
      await expectOutcome({ host: silent.address, ...http });
      await using remote = await grpc(() => undefined);
      await expectOutcome({ host: remote.address });
    });

    test('answers nonsense', async () => {
      await using raw = await rawUpstream((socket) => socket.end('nonsense\r\n\r\n'));
      await expectOutcome({ host: raw.address, ...http });
      await using odd = await rawUpstream((socket) =>
        socket.end('HTTP/1.1 999 OK\r\ncontent-length: 0\r\n\r\n'),
      );
      await expectOutcome({ host: odd.address, ...http });
      await using plain = await httpUpstream();
      await expectOutcome({ host: plain.address });
      await using remote = await grpc(() => new Error('broken'));
      await expectOutcome({ host: remote.address });
    });
  },
);

describe('the configuration of networkExtAuthz', () => {
  const refused: readonly (readonly [string, object, string])[] = [
    ['no service', { protocol: { http: {} } }, 'exactly one of `host` and `backend`'],
    ['two protocols', { host: 'a:1', protocol: { http: {}, grpc: {} } }, 'exactly one of `grpc` and `http`'],
    ['headers of requests', { host: 'a:1', includeRequestHeaders: ['x'] }, 'a connection has no request'],
    ['a redirect', { host: 'a:1', protocol: { http: { redirect: '"/"' } } }, 'without a response'],
    ['a status', { host: 'a:1', failureMode: { denyWithStatus: 403 } }, 'has no status'],
  ];
  test.each(refused)('%s is refused', (_, networkExtAuthz, message) => {
    const yaml = JSON.stringify({ frontendPolicies: { networkExtAuthz } });
    const { diagnostics } = loadConfigText(yaml, 'test.yaml', {});
    expect(diagnostics.map((each) => `${each.message} ${each.help}`).join('\n')).toContain(message);
  });

  test('expressions read the connection only', async () => {
    const policies = overHttp('127.0.0.1:1', { path: 'request.path' });
    await expect(answering(policies)).rejects.toThrow('request');
  });

  test('a path that is none closes the connection, whatever the failure mode', async () => {
    await using service = await httpUpstream();
    const more = { failureMode: 'allow' };
    await using gate = await answering(overHttp(service.address, { path: '"no path"' }, more));
    await expect(send(gate.url)).rejects.toThrow();
    expect(service.received).toEqual([]);
  });
});
