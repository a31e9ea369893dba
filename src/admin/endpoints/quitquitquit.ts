import { defineEndpoint, sendText } from '../endpoint.ts';

/** Stops the gateway gracefully, and answers once open requests have finished. */
export const quitquitquit = defineEndpoint({
  path: '/quitquitquit',
  methods: { POST: { role: 'operator', audit: 'shutdown' } },
  isSlow: true,
  async handle(_request, reply, { stop }, call) {
    // Afterwards, the database is closed.
    await call.record('done');
    await stop();
    return sendText(reply, 200, 'shutdown now\n');
  },
});
