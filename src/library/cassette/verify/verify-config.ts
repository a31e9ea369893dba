import { OwnGateway } from '../../own-gateway.ts';
import { startProgram } from '../../start-program.ts';
import type { Cassette } from '../format.ts';
import { FactsCollector, MARK } from './own-gateway.ts';
import { type Verified, type VerifySettings, verify } from './verify.ts';

/** The gateways of a recording are not those of the configuration. */
export class GatewayNamesError extends Error {}

/**
 * Starts a gateway with the configuration of a file, on free ports of 127.0.0.1, and compares it with a recording.
 *
 * @throws as `createGateway` and `verify` do, and GatewayNamesError
 */
export async function verifyConfig(
  cassette: Cassette,
  file: string,
  env: Readonly<Record<string, string | undefined>>,
  settings: Omit<VerifySettings, 'urls' | 'mark' | 'factsOf'>,
): Promise<Verified> {
  const collector = new FactsCollector();
  const program = await startProgram(file, { env, listen: 'free' }, collector);
  const gateway = new OwnGateway(program);
  try {
    const urls = urlsFor(cassette, gateway.urls);
    // Facts of requests whose client has left come with the end of the gateway.
    return await verify(cassette, {
      ...settings,
      urls,
      mark: MARK,
      sent: () => gateway.close(),
      factsOf: (exchange) => collector.factsOf(exchange),
    });
  } finally {
    await gateway.close();
  }
}

/** By the names in the recording. One gateway may have another name now. */
export function urlsFor(
  { head: { gateways } }: Cassette,
  urls: Readonly<Record<string, string>>,
): Record<string, string> {
  const all = Object.values(urls);
  return Object.fromEntries(
    gateways.map(({ name }) => {
      const url = urls[name] ?? (gateways.length === 1 && all.length === 1 ? all[0] : undefined);
      if (url !== undefined) return [name, url];
      const names = Object.keys(urls).join(', ');
      throw new GatewayNamesError(`the recording has a gateway \`${name}\`, and here are: ${names}`);
    }),
  );
}
