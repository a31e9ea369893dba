import { createRequestStateCodec } from '@modelcontextprotocol/server';

/** What a tool remembers between two rounds of questions. */
export interface RoundState {
  tool: string;
  round: number;
}

/**
 * Seals the state that travels through the client. The key is fixed because a gateway may answer two rounds
 * of one call from two child processes, and each must be able to open what the other sealed.
 */
export const requestState = createRequestStateCodec<RoundState>({
  key: 'a test fixture has no secrets to keep',
});
