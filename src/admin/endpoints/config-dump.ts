import { Readable } from 'node:stream';
import { writeConfigDump } from '../../server/config/dump/write.ts';
import { redactConfig } from '../../server/config/redact.ts';
import { activityOf } from '../../server/workers/activity.ts';
import { defineEndpoint, shows } from '../endpoint.ts';

/** The active configuration in upstream's format (`server/kernel/config-dump.ts`). */
export const configDump = defineEndpoint({
  path: '/config_dump',
  methods: { GET: shows('operator') },
  async handle(_request, reply, admin) {
    const { config, source, runtime } = admin.served();
    const { backends } = await activityOf(admin.gateway);
    const ports = new Map(admin.gateway.listeners.map(({ gateway, port }) => [gateway.plan.name, port]));
    const texts = writeConfigDump({
      config: redactConfig(config, source, runtime.env),
      redactor: admin.redactor(),
      portOf: (gateway) => ports.get(gateway),
      endpointInfo: (place, model) => backends[place]?.endpoints?.[model],
    });
    return reply.type('application/json').send(Readable.from(texts, { objectMode: false }));
  },
});
