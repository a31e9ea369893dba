import type { ReasoningPart } from './chat.ts';

/**
 * Providers return reasoning with a signature or in encrypted form, and want it back unchanged. A client of another
 * format has one opaque text for that (`signature` of the Messages API, `encrypted_content` of the Responses API), which
 * it sends back. This is what the text contains if another provider's reasoning is in it:
 *
 *     agctl1:<format of the provider>:<s: signature, e: encrypted, n: neither>:<id>:<signature or encrypted text>
 */
const PREFIX = 'agctl1:';
const PACKED = /^agctl1:(\w+):([sen]):([^:]*):/;

/** The opaque text for a client; undefined if the provider wants nothing back. */
export function packReasoning({ origin, signature, encrypted, id }: ReasoningPart): string | undefined {
  if (origin === undefined) return undefined;
  const [kind, state] =
    signature !== undefined ? ['s', signature] : encrypted !== undefined ? ['e', encrypted] : ['n', ''];
  return `agctl1:${origin}:${kind}:${id?.replaceAll(':', '') ?? ''}:${state}`;
}

/** The members that `packReasoning` put into the text; undefined for a text that the client's own provider made. */
export function unpackReasoning(
  packed: string,
): Pick<ReasoningPart, 'origin' | 'signature' | 'encrypted' | 'id'> | undefined {
  const match = PACKED.exec(packed);
  // Clients join what a stream has of several texts; that cannot be divided again.
  if (match === null || packed.lastIndexOf(PREFIX) > 0) return undefined;
  const [prefix, origin = '', kind, id = ''] = match;
  // A name that a client made up is that of no provider, so nothing of it reaches one.
  const state = packed.slice(prefix.length);
  return {
    origin,
    ...(kind === 's' ? { signature: state } : {}),
    ...(kind === 'e' ? { encrypted: state } : {}),
    ...(id === '' ? {} : { id }),
  };
}
