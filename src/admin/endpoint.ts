import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Admin } from './sources.ts';

export type Method = 'GET' | 'POST';

/** One path of the admin server. The file of an endpoint exports one; `endpoints/index.ts` lists them. */
export interface Endpoint {
  readonly path: string;
  readonly methods: readonly Method[];
  /** Answers only after a while, so that a silent connection says nothing. */
  readonly isSlow?: boolean;
  /**
   * Answers through `reply`, or returns what `reply.send` takes. An error thrown here becomes 500 with its message
   * as text.
   */
  handle(request: FastifyRequest, reply: FastifyReply, admin: Admin): unknown;
}

export function defineEndpoint(endpoint: Endpoint): Endpoint {
  return endpoint;
}

/** A query parameter: the first of several, undefined when it is not there. */
export function parameter(request: FastifyRequest, name: string): string | undefined {
  const value = (request.query as Readonly<Record<string, string | string[] | undefined>>)[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Pretty JSON of two spaces without a line break at its end, as upstream's endpoints write it. */
export function sendJson(reply: FastifyReply, value: unknown): FastifyReply {
  return reply.type('application/json').send(JSON.stringify(value, null, 2));
}

export function sendText(reply: FastifyReply, status: number, text: string): FastifyReply {
  return reply.code(status).type('text/plain; charset=utf-8').send(text);
}
