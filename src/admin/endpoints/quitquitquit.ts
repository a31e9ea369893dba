import { defineEndpoint, sendText } from '../endpoint.ts';

/** Stops the gateway gracefully, and answers once open requests have finished. */
export const quitquitquit = defineEndpoint({
  path: '/quitquitquit',
  methods: ['POST'],
  isSlow: true,
  async handle(_request, reply, { stop, log }) {
    log.info('admin', 'shutdown requested');
    await stop();
    return sendText(reply, 200, 'shutdown now\n');
  },
});
