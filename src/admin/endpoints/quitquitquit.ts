import { defineEndpoint, sendText } from '../endpoint.ts';

/** Stops the gateway gracefully and answers once open requests have ended. */
export const quitquitquit = defineEndpoint({
  path: '/quitquitquit',
  methods: ['POST'],
  isSlow: true,
  async handle(_request, reply, { stop, log }) {
    log.info('admin', 'a stop was asked for');
    await stop();
    return sendText(reply, 200, 'shutdown now\n');
  },
});
