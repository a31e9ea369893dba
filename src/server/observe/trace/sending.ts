import type { Readable } from 'node:stream';
import { tapUpload } from './body-tap.ts';
import type { Tracer } from './tracer.ts';

interface Sending<B> {
  readonly headers: readonly string[];
  readonly path: string;
  readonly authority: string;
  readonly body: B;
}

/** What a backend is about to get. Returns the body to send, which shows itself when it has been sent. */
export function traceSending<B extends null | string | Uint8Array | Readable>(
  tracer: Tracer,
  { headers, path, authority, body }: Sending<B>,
): B | Readable {
  tracer.requestSnapshot('final request', { headers, path, authority });
  if (tracer.isBrief) return body;
  return tapUpload(body, (tap, isStream) => tracer.uploaded(tap, isStream));
}
