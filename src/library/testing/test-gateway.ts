import type { Gateway, GatewayOptions, LogMessage } from '../api.ts';
import type { GatewayConfig } from '../config-types.ts';
import type { RequestFacts } from '../request-facts.ts';
import { startProgram } from '../start-program.ts';
import { RecordingGateway } from './recording-gateway.ts';

/** A gateway that remembers what has happened. */
export interface TestGateway extends Gateway {
  /** The requests that have ended, in this order. `idle` waits for those that have not. */
  readonly requests: readonly RequestFacts[];
  /** The messages of its log. */
  readonly messages: readonly LogMessage[];
  /** Resolves when every request has ended, except open event streams (GET). Rejects after five seconds. */
  idle(): Promise<void>;
  /** Forgets the requests and messages until now. */
  clear(): void;
}

/**
 * Starts a gateway for a test: `createGateway` with a free port of 127.0.0.1 instead of each configured one.
 *
 * @throws as `createGateway` does
 */
export async function testGateway(
  config: GatewayConfig | string | URL,
  options: Omit<GatewayOptions, 'listen'> = {},
): Promise<TestGateway> {
  return new RecordingGateway(await startProgram(config, { ...options, listen: 'free' }));
}
