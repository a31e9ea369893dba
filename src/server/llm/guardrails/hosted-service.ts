import { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import { jsonIn } from '../../../core/foreign.ts';
import { mapping } from '../../../core/schema/mapping.ts';
import { ACTIONS, GuardrailError, PHASES } from '../../guardrails/outcome.ts';
import { responseOf } from '../../guardrails/service-response.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { credential } from '../../transport/services/backend-credential.ts';
import { createUpstream } from '../../transport/upstream/upstream.ts';
import { explainUpstreamError } from '../../transport/upstream/upstream-error.ts';
import { type Guard, type ItemSettings, inScope, type Verdict } from './guard.ts';
import type { GuardedText } from './guarded-text.ts';

/** `policies` of services that are called with a key. */
export const keyPolicies = mapping('How the gateway connects to the service.', {
  backendAuth: mapping('Credential for the service.', {
    key: credential.meta({ secret: true }).describe('Key of the service, or `{ file: … }`.'),
  }),
});

/** `baseUrl` of services whose address their vendor defines. */
export const serviceUrl = z
  .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
  .refine((url) => !URL.canParse(url) || (new URL(url).pathname === '/' && !/[?#@]/.test(url)), {
    error: 'expected a URL with scheme, host and port only',
  });

export interface HostedRequest {
  /** Path and query. */
  readonly path: string;
  readonly body: string;
  readonly authority: string;
}

/** Returns the headers with the credentials for a request. May throw an `AppError`. */
export type Authorize = (
  request: HostedRequest,
) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;

/** The service of a vendor that checks texts. */
export interface HostedService {
  /** Key of the guardrail in the configuration. */
  readonly kind: string;
  /** Scheme, host and port. */
  readonly origin: string;
  readonly authorize: Authorize;
  /**
   * Checks texts, and may ask several times. Throws `GuardrailError` if the service fails: none of these kinds has a failure
   * mode, so the call is then rejected.
   */
  check(ask: Ask, texts: readonly GuardedText[]): Promise<Verdict>;
}

/** Sends a JSON body to a path and returns the response, if it has this shape. */
export type Ask = <Shape extends z.ZodType>(
  path: string,
  body: object,
  shape: Shape,
) => Promise<z.output<Shape>>;

/** A guardrail that asks such a service, and counts the outcomes. */
export function hostedGuard(
  { kind, origin, authorize, check }: HostedService,
  { phase, scope }: ItemSettings,
  context: CompileContext,
): Omit<Guard, 'rejection'> {
  const counted = context.settings.counter('guardrails');
  const { guardrailConnections, guardrailTimeout } = context.settings.limits;
  const upstream = createUpstream(
    { origin },
    {
      connections: guardrailConnections,
      meter: context.settings.callMeter('Policy', 'Guardrail'),
      log: context.log,
    },
  );
  context.inspection.bounds.push({
    name: 'guardrail.connections',
    at: context.path.join('.'),
    max: guardrailConnections,
    used: () => upstream.connected,
  });
  return {
    place: context.place(),
    kind,
    name: upstream.address,
    sees: (text) => text.content !== '' && inScope(scope, text),
    async check(texts, lookup, signal) {
      const ask: Ask = async (path, content, shape) => {
        const body = JSON.stringify(content);
        const { authority } = upstream;
        const headers = {
          'content-type': 'application/json',
          ...(await authorize({ path, body, authority })),
        };
        const request = {
          method: 'POST',
          path,
          headers: Object.entries({ host: authority, accept: 'application/json', ...headers }).flat(),
          body,
          span: lookup.span,
        };
        const answer = await responseOf(upstream, request, {
          service: 'service',
          timeoutMs: guardrailTimeout,
          signal,
          observer: lookup.observed?.observer,
        });
        const parsed = shape.safeParse(jsonIn(answer.toString('utf8')));
        if (!parsed.success) throw new GuardrailError('the response of the service has an unknown format');
        return parsed.data;
      };
      try {
        const verdict = await check(ask, texts);
        counted([PHASES[phase], ACTIONS[verdict.kind]]);
        return verdict;
      } catch (error) {
        if (signal.aborted) throw error;
        counted([PHASES[phase], ACTIONS.reject]);
        throw new GuardrailError(problemOf(error));
      }
    },
    close: () => upstream.close(),
  };
}

function problemOf(error: unknown): string {
  if (error instanceof GuardrailError) return error.message;
  // Missing credentials.
  if (error instanceof AppError) return error.detail ?? error.message;
  return explainUpstreamError(error);
}
