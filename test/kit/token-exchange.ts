import { json } from './idp.ts';
import { type HttpUpstream, httpUpstream } from './upstream.ts';

/** An authorization server that exchanges tokens (RFC 8693). */
export interface ExchangeServer extends HttpUpstream {
  /** `oauthTokenExchange` with that audience. */
  exchange(audience: string, more?: object): object;
  /** What was presented for each audience, in the order of the requests. */
  readonly asked: readonly (readonly [audience: string, subject: string])[];
}

interface Options {
  /** Of the tokens, in seconds. */
  readonly lifetime?: number;
  /** Whether the request is refused. */
  readonly refuses?: (audience: string, subject: string) => boolean;
}

/** The token that the server issues for a subject token. */
export const issuedFor = (subject: string, audience: string, count = 1): string =>
  `canary-${audience}-${subject}-${count}`;

/** Starts it. The count in its tokens says how often it was asked for the same one. */
export async function exchangeServer({ lifetime = 300, refuses }: Options = {}): Promise<ExchangeServer> {
  const asked: [string, string][] = [];
  const server = await httpUpstream((_, response, { body }) => {
    const form = new URLSearchParams(body);
    const subject = form.get('subject_token') ?? form.get('assertion') ?? '';
    const audience = form.get('audience') ?? '';
    asked.push([audience, subject]);
    if (refuses?.(audience, subject) === true)
      return json(response, 400, { error: 'invalid_target', error_description: `no ${subject}` });
    const count = asked.filter(([to, of]) => to === audience && of === subject).length;
    const access_token = issuedFor(subject, audience, count);
    return json(response, 200, {
      access_token,
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: lifetime,
    });
  });
  const exchange = (audience: string, more: object = {}): object => ({
    host: server.address,
    path: '/token',
    audiences: [audience],
    clientAuth: { clientId: 'gateway', clientSecret: 'canary-client-secret' },
    ...more,
  });
  return Object.assign(server, { exchange, asked });
}
