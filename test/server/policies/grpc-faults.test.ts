import { expect, test } from 'vitest';
import { brokenGrpc, GRPC_FAULTS } from '../../kit/broken-grpc.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';

const POLICIES = {
  extAuthz: [403, 'allow', {}],
  extProc: [500, 'failOpen', {}],
  remoteRateLimit: [
    500,
    'failOpen',
    { domain: 'a', descriptors: [{ entries: [{ key: 'a', value: '"a"' }] }] },
  ],
} as const;

for (const [key, [status, lenient, settings]] of Object.entries(POLICIES))
  test.each(GRPC_FAULTS)(
    `${key} refuses the request when its service %s, or allows it if configured`,
    async (fault) => {
      await using service = await brokenGrpc(fault);
      const policies = { http: { requestTimeout: '1s' } };
      const policy = { host: service.address, ...settings, policies };
      await using gate = await answeringGateway({ [key]: policy });
      expect(await send(gate.url)).toMatchObject({ status });
      // The gateway and the next call are not affected.
      await using open = await answeringGateway({ [key]: { ...policy, failureMode: lenient } });
      expect(await send(open.url)).toMatchObject({ status: 200, text: 'reached' });
      // Each call, also one that is repeated on a new connection.
      expect(service.calls).toBeGreaterThanOrEqual(2);
      expect(service.calls).toBeLessThan(12);
      expect(service.written).toBeLessThan(20_000_000);
    },
  );
