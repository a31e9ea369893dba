import { hostnameOf, rebindingHeader, rebindingMessage } from '../../core/dns-rebinding.ts';
import { type LocalServer, listen } from '../local-server.ts';
import type { Cassette } from './format.ts';
import { Replay, type ReplaySettings } from './replay.ts';

export interface ServeSettings extends ReplaySettings {
  readonly host?: string;
  /** Of the first gateway of the recording; others have the next ones. 0: free ones. Default: those that were recorded. */
  readonly port?: number;
}

/** A recording that is served. */
export interface ServedReplay {
  /** Origin of each gateway of the recording, by its name. */
  readonly urls: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Serves a cassette: each gateway of the recording on a port of its own. Rejects with Node's error if one cannot be opened. */
export async function serveReplay(
  cassette: Cassette,
  { host = '127.0.0.1', port, ...settings }: ServeSettings,
): Promise<ServedReplay> {
  const replay = new Replay(cassette, settings);
  const opened: [name: string, server: LocalServer][] = [];
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(([, server]) => server.close()));
  };
  try {
    for (const [index, gateway] of cassette.head.gateways.entries()) {
      const at = port === undefined ? gateway.port : port === 0 ? 0 : port + index;
      const answer = async (request: Request): Promise<Response> =>
        foreign(request, host) ?? replay.handle(request, gateway.name);
      const server = await listen(answer, { host, port: at });
      opened.push([gateway.name, server]);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { urls: Object.fromEntries(opened.map(([name, { origin }]) => [name, origin])), close };
}

/** The refusal of a request that a page of another site may have sent. */
function foreign({ headers }: Request, localAddress: string): Response | undefined {
  const named = hostnameOf(`http://${headers.get('host') ?? ''}`);
  const origin = headers.get('origin') ?? undefined;
  const header = rebindingHeader({ localAddress, host: named, origin }, new Set());
  if (header === undefined) return undefined;
  return new Response(`${rebindingMessage(header, 'a name of another address (--host)')}\n`, { status: 403 });
}
