import { LIMITS } from '../../core/limits.ts';
import type { LineSink } from '../../core/log.ts';
import type { ShownBound } from '../../core/overview.ts';
import { counted } from '../../core/render/counted.ts';
import { STREAM_FIELD } from '../../core/requests/finished.ts';
import { standingResponse } from '../kernel/admission.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { operatorRequest } from '../kernel/request/shared-slots.ts';
import { failedModels, llmCall } from '../llm/llm-call.ts';
import type { MetricValues } from '../observe/metrics/family.ts';
import { openRequest } from '../observe/open-request.ts';
import { type RecentRequest, RecentRequests } from '../observe/recent-requests.ts';
import { type CountedServices, ServiceHistory, type ServiceStep } from '../observe/service-history.ts';
import type { Gateway, RunningGateway } from '../runtime/gateway.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { isForwarded } from '../runtime/worker-role.ts';
import { processBounds } from './bounds.ts';
import { type MemoryUsage, memoryUsage } from './memory-usage.ts';
import { outagesOf } from './outages.ts';
import type { Activity, OpenRequests, ProcessView } from './process-view.ts';
import { sampleCpu } from './profile/cpu-samples.ts';
import { sampleHeap } from './profile/heap-samples.ts';
import type { Samples } from './profile/samples.ts';
import type { RequestHistory, Serving } from './serving.ts';

export interface OwnProcessOptions {
  /** Undefined if there is only one process. */
  readonly name?: string;
  readonly gateway: RunningGateway;
  /** The active configuration. */
  runtime(): Runtime;
  /** Log outputs by name. */
  readonly sinks: Readonly<Record<string, LineSink>>;
}

/** This process, which handles requests. */
export class OwnProcess implements ProcessView {
  readonly name: string | undefined;
  readonly requests = new RecentRequests();
  readonly #services = new ServiceHistory();
  readonly #options: OwnProcessOptions;
  #sampling = new AbortController();

  constructor(options: OwnProcessOptions) {
    this.name = options.name;
    this.#options = options;
  }

  recordRequests(): () => void {
    return this.#options.gateway.onRequestFinished((fields, ctx) => {
      if (operatorRequest.get(ctx) === true) return;
      this.requests.add(stands(ctx) ? [...fields, [STREAM_FIELD, true]] : fields);
      if (!isUnsent(ctx)) this.#services.add(fields, Date.now());
    });
  }

  async activity(): Promise<Activity> {
    const runtime = this.#options.runtime();
    const { inspection } = runtime;
    const openRequests = trafficOf(this.#options.gateway);
    const states = inspection.backendPaths.map((path) => [path, inspection.backend(path)] as const);
    return {
      openRequests: openRequests.length,
      backends: Object.fromEntries(states),
      outages: outagesOf(runtime),
      certificates: inspection.certificates.map((read) => read()),
    };
  }

  async bounds(): Promise<readonly ShownBound[]> {
    const { gateway, sinks } = this.#options;
    return [
      ...(await processBounds({ gateway, runtime: this.#options.runtime(), sinks })),
      { name: 'admin.services', used: this.#services.size, max: LIMITS.countedServices },
    ];
  }

  memory(): Promise<MemoryUsage> {
    return memoryUsage();
  }

  async tasks(): Promise<readonly string[]> {
    return [...gatewayTasks(this.#options.gateway), ...backendTasks(this.#options.runtime())];
  }

  metrics(): Promise<readonly MetricValues[]> {
    return this.#options.gateway.metrics.read();
  }

  async openRequests(): Promise<OpenRequests> {
    const { removed } = this.#options.runtime().accessLog;
    // Another worker has the forwarded ones.
    const open = trafficOf(this.#options.gateway).filter((ctx) => isForwarded.get(ctx) !== true);
    const listed = open.slice(0, LIMITS.listedTasks);
    return { total: open.length, requests: listed.map((ctx) => openRequest(ctx, removed)) };
  }

  async recentRequests(afterId: number): Promise<readonly RecentRequest[]> {
    return this.requests.list(undefined, afterId);
  }

  async services(step: ServiceStep, from: number, to: number): Promise<CountedServices> {
    return this.#services.counted(step, from, to);
  }

  cpuSamples(seconds: number, frequency: number): Promise<Samples | undefined> {
    return sampleCpu(seconds, frequency, this.#sampling.signal);
  }

  heapSamples(seconds: number): Promise<Samples | undefined> {
    return sampleHeap(seconds, this.#sampling.signal);
  }

  stopSampling(): void {
    this.#sampling.abort();
    this.#sampling = new AbortController();
  }
}

/** Open requests without those of operators. */
const trafficOf = ({ openRequests }: Pick<Gateway, 'openRequests'>): RequestContext[] =>
  [...openRequests].filter((ctx) => operatorRequest.get(ctx) !== true);

/** Whether the response stood until one side ended it: a stream of events, or a WebSocket. */
const stands = (ctx: RequestContext): boolean =>
  standingResponse.get(ctx) === true || ctx.reply?.status === 101;

/** Whether it is an LLM call that was refused before anything was sent to the provider, which is not to blame for it. */
const isUnsent = (ctx: RequestContext): boolean => {
  const call = llmCall.get(ctx);
  return call !== undefined && call.progress === undefined && failedModels.get(ctx) === undefined;
};

function gatewayTasks({ openRequests, listeners }: Gateway): string[] {
  const now = performance.now();
  const open = [...openRequests];
  const listed = open.slice(0, LIMITS.listedTasks);
  const lines: string[] = [];
  for (const { gateway: each, port } of listeners) {
    const { name, listeners: own } = each.plan;
    const names = new Set([name, ...own.map((listener) => listener.name)]);
    lines.push(`gateway ${name} on port ${port}`);
    for (const ctx of listed.filter(({ listener }) => names.has(listener))) {
      const to = ctx.endpoint === undefined ? '' : ` to ${ctx.endpoint}`;
      const age = Math.round(now - ctx.timings.started);
      lines.push(
        `  ${ctx.method} ${ctx.path} from ${ctx.client.address}, route ${ctx.route ?? '-'}${to}, for ${age} ms`,
      );
    }
  }
  if (open.length > listed.length) lines.push(`and ${counted(open.length - listed.length, 'more request')}`);
  return lines;
}

function backendTasks({ inspection }: Runtime): string[] {
  const lines: string[] = [];
  for (const place of inspection.backendPaths) {
    const { sessions, targets = [] } = inspection.backend(place);
    if (sessions === undefined) continue;
    lines.push(`mcp backend ${place}: ${counted(sessions, 'session')}`);
    for (const { name, state: how, connections, problem } of targets)
      lines.push(
        `  target ${name}: ${how}, ${counted(connections, 'connection')}${problem === undefined ? '' : `: ${problem}`}`,
      );
  }
  return lines;
}

/** A gateway whose requests this process handles. */
export class OwnServing implements Serving {
  readonly processes: readonly [OwnProcess];
  readonly traceSubscribers: Serving['traceSubscribers'];
  readonly requests: RequestHistory;
  readonly #gateway: RunningGateway;

  constructor(options: OwnProcessOptions) {
    const own = new OwnProcess(options);
    this.processes = [own];
    this.#gateway = options.gateway;
    this.traceSubscribers = options.gateway.traceSubscribers;
    this.requests = Object.assign(own.requests, { update: () => Promise.resolve() });
  }

  get listeners(): Serving['listeners'] {
    return this.#gateway.listeners;
  }

  recordRequests(): () => void {
    return this.processes[0].recordRequests();
  }

  renderMetrics(): Promise<string> {
    return this.#gateway.metrics.render();
  }
}
