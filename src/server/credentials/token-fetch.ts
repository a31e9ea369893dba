import { AppError, messageOf } from '../../core/errors.ts';
import { isRecord, jsonIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import type { DocumentClient } from '../transport/upstream/document-client.ts';

/**
 * The `fetch` that OAuth libraries get for requests to a token endpoint. They check the members of an answer, but refuse all
 * of it because of one that is not needed, and accept any lifetime.
 */
export function tokenFetch(client: DocumentClient): (url: string, request: RequestInit) => Promise<Response> {
  return async (url, request) => {
    const { status, contentType, body } = await client.fetchLike(url, request, LIMITS.metadataBytes);
    const text = status === 200 ? usableAnswer(body) : body;
    // RFC 7009 §2.2: the answer to a revocation may be empty, and statuses such as 204 have no body.
    const sent = text.length === 0 ? null : new Uint8Array(text);
    return new Response(sent, { status, headers: { 'content-type': contentType } });
  };
}

/**
 * An answer of an authorization server to such a request. One that fails is not a refusal: the server may accept the same request
 * later. Rejects with `AppError` `provider_failed`.
 */
export async function oauthAnswer(request: Promise<Response>): Promise<Response> {
  let response: Response;
  try {
    response = await request;
  } catch (error) {
    throw new AppError('provider_failed', { detail: messageOf(error) });
  }
  if (response.status >= 500 || response.status === 429)
    throw new AppError('provider_failed', { detail: `the authorization server answered ${response.status}` });
  return response;
}

/**
 * An answer (RFC 6749 §5.1) without members that are null, as several servers send missing ones, and with a lifetime that is
 * a number of seconds within bounds, or none. Entra (version 1.0) and AD FS send it as text.
 */
function usableAnswer(body: Buffer): Buffer {
  const value = jsonIn(body.toString('utf8'));
  if (!isRecord(value)) return body;
  const { expires_in: lifetime, ...others } = value;
  const known = Object.entries(others).filter(([, member]) => member !== null);
  return Buffer.from(JSON.stringify({ ...Object.fromEntries(known), expires_in: secondsOf(lifetime) }));
}

/** A lifetime that has passed is 0: the token is used once. Undefined if it is not a number. */
function secondsOf(lifetime: unknown): number | undefined {
  const seconds = typeof lifetime === 'string' && lifetime.trim() !== '' ? Number(lifetime) : lifetime;
  if (typeof seconds !== 'number' || Number.isNaN(seconds)) return undefined;
  return Math.min(Math.max(0, seconds), LIMITS.tokenLifetimeMax / 1000);
}
