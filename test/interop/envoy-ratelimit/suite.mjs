// Envoy's rate-limit service, envoyproxy/ratelimit, which counts in Redis.
import { goPrograms } from '../go-program.mjs';
import * as redis from '../redis/suite.mjs';

const service = goPrograms(import.meta.dirname, { RATELIMIT: '.' });

export const missing = () => service.missing() ?? redis.missing();

export async function start() {
  const counters = await redis.start();
  const built = await service.start().catch(async (error) => {
    await counters.stop();
    throw error;
  });
  const stop = async () => void (await Promise.all([counters.stop(), built.stop()]));
  return { env: { ...counters.env, ...built.env }, stop };
}
