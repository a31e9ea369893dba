import type { FastifyRequest } from 'fastify';
import type { ShownServices } from '../../core/service-figures.ts';
import { figuresOfServices, SERVICE_STEPS, type ServiceStep } from '../../server/observe/service-history.ts';
import { answersOf } from '../../server/workers/process-view.ts';
import { defineEndpoint, sendJson, sendProblem, shows } from '../endpoint.ts';
import { InvalidParameter, parametersOf, TIMES, timesOf } from '../record-query.ts';

/**
 * Calls, errors, failovers and latency of MCP targets, providers and models since the processes have started: `step=minute` for up to an
 * hour, `step=hour` for up to a day, `step=day` for up to 30 days; `since`, or `from` and `to`. `ShownServices` (`core/service-figures.ts`).
 */
export const services = defineEndpoint({
  path: '/api/services',
  methods: { GET: shows('viewer') },
  async handle(request, reply, { gateway, redactor }) {
    const query = queryOf(request);
    if (typeof query === 'string') return sendProblem(reply, 400, query);
    const { step, from, to } = query;
    const all = await answersOf(gateway.processes, (process) => process.services(step, from, to));
    const shown: ShownServices = {
      since: Math.max(...all.map(({ since }) => since), 0),
      services: figuresOfServices(all),
    };
    return sendJson(reply, redactor().value(shown));
  },
});

/** Returns what is wrong with the parameters as text. */
function queryOf(request: FastifyRequest): { step: ServiceStep; from: number; to: number } | string {
  try {
    const given = parametersOf(request, ['step', ...TIMES]);
    const step = SERVICE_STEPS.find((each) => each === (given.get('step') ?? 'hour'));
    if (step === undefined) return `step is not one of ${SERVICE_STEPS.join(', ')}`;
    return { step, ...timesOf(given, 24 * 3_600_000) };
  } catch (error) {
    if (error instanceof InvalidParameter) return error.message;
    throw error;
  }
}
