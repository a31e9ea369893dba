// Whether two workers together admit exactly as many requests as a limit allows.
import { ScaledGateway } from './gateways.mjs';
import { Senders } from './senders.mjs';

const LIMIT = 1000;
const CONNECTIONS = 64;
const REQUESTS = 5000;

/** Resolves to `{ text, isOk }`. */
export async function exactLimit({ bin, folder }) {
  const policies = {
    localRateLimit: [{ maxTokens: LIMIT, tokensPerFill: LIMIT, fillInterval: '60s' }],
    directResponse: { status: 200, body: 'ok' },
  };
  const routes = [{ name: 'limited', policies }];
  const config = { gateways: { default: { port: 0, address: '127.0.0.1', routes } } };
  const gateway = await ScaledGateway.start({ bin, folder, config, workers: 2 });
  try {
    const started = performance.now();
    const senders = new Senders(gateway.origin, CONNECTIONS, REQUESTS);
    await senders.ended;
    const seconds = (performance.now() - started) / 1000;
    const shares = Object.values(await gateway.connections());
    await senders.stop();
    const { 200: admitted = 0, 429: refused = 0 } = senders.outcomes;
    const isOk = admitted === LIMIT && admitted + refused === REQUESTS;
    const text =
      `limit of ${LIMIT} per minute over 2 workers: ${REQUESTS} requests in ${seconds.toFixed(1)} s on ` +
      `${shares.join(' + ')} connections: ${admitted} admitted, ${refused} refused${isOk ? '' : ': NOT OK'}`;
    return { text, isOk };
  } finally {
    await gateway.stop();
  }
}
