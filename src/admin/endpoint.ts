import type { FastifyReply, FastifyRequest } from 'fastify';
import { membersOf, stringIn } from '../core/foreign.ts';
import type { Access, EndpointCall } from './call.ts';
import { problemAt } from './problem.ts';
import type { Admin } from './sources.ts';

export type Method = 'GET' | 'POST';

/** One path of the admin server. `endpoints/index.ts` lists all of them. */
export interface Endpoint {
  readonly path: string;
  readonly methods: Readonly<Partial<Record<Method, Access>>>;
  /** Whether the response may take a while, so that a silent connection is not a sign of a failure. */
  readonly isSlow?: boolean;
  /**
   * Answers through `reply`, or returns what `reply.send` accepts. A thrown error becomes status 500 with its message.
   */
  handle(request: FastifyRequest, reply: FastifyReply, admin: Admin, call: EndpointCall): unknown;
}

export function defineEndpoint(endpoint: Endpoint): Endpoint {
  return endpoint;
}

/** Its methods, in the order of `Allow`. */
export const methodsOf = ({ methods }: Endpoint): readonly Method[] =>
  (['GET', 'POST'] as const).filter((method) => methods[method] !== undefined);

/** A method that only shows something. */
export const shows = (role: Access['role']): Access => ({ role, audit: false });

/** A query parameter: the first of several values, or undefined. */
export function parameter(request: FastifyRequest, name: string): string | undefined {
  const value = membersOf(request.query)[name];
  return stringIn(Array.isArray(value) ? value[0] : value);
}

/** Sends JSON indented by two spaces without a trailing line break, as upstream's endpoints do. */
export function sendJson(reply: FastifyReply, value: unknown): FastifyReply {
  return reply.type('application/json').send(JSON.stringify(value, null, 2));
}

export function sendText(reply: FastifyReply, status: number, text: string): FastifyReply {
  return reply.code(status).type('text/plain; charset=utf-8').send(text);
}

/** Sends an error. `message` says what, where, and what to do, on one line. */
export function sendProblem(reply: FastifyReply, status: number, message: string): FastifyReply {
  const { type, text } = problemAt(reply.request.url, message);
  return reply.code(status).type(type).send(text);
}
