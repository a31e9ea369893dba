import type { MetricDescription } from '../../server/observe/metrics/family.ts';
import { Queries } from './queries.ts';

/** One line or group of lines of a panel. `legend`: Grafana's template of its name. */
interface Line {
  readonly query: string;
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  readonly description: string;
  /** Unit of Grafana, such as `s` or `reqps`. */
  readonly unit: string;
  readonly lines: readonly Line[];
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const COLUMNS = 24;
const PANEL = { w: 8, h: 8 };

/** Text of deploy/grafana/agctl.json: a dashboard with rows for requests, LLM, MCP and the gateway, and every other metric. */
export function grafanaDashboard(): string {
  const queries = new Queries(['job=~"$job"', 'instance=~"$instance"'], '$__rate_interval');
  const rows = [requests(queries), llm(queries), mcp(queries), gateway(queries)];
  const others = queries.metrics.filter(({ name }) => !queries.used.has(name));
  rows.push({ title: 'Everything else', panels: others.map((metric) => automatic(queries, metric)) });
  return `${JSON.stringify(dashboard(rows), null, 2)}\n`;
}

const quantiles = (queries: Queries, name: string, where?: string): Line[] =>
  [0.5, 0.95, 0.99].map((share) => ({
    query: queries.quantile(share, name, where === undefined ? {} : { where }),
    legend: `p${share * 100}`,
  }));

function requests(queries: Queries): Row {
  const failed = queries.rate('requests', { by: ['backend'], where: 'status=~"5.."' });
  return {
    title: 'Requests',
    panels: [
      {
        title: 'Requests by status',
        description: 'Finished requests per second.',
        unit: 'reqps',
        lines: [{ query: queries.rate('requests', { by: ['status'] }), legend: '{{status}}' }],
      },
      {
        title: 'Failed requests by backend',
        description: 'Share of requests with a status of 500 or above.',
        unit: 'percentunit',
        lines: [
          { query: `${failed} / ${queries.rate('requests', { by: ['backend'] })}`, legend: '{{backend}}' },
        ],
      },
      {
        title: 'Duration',
        description: 'From the first byte of a request to the last one of its response, streams included.',
        unit: 's',
        lines: quantiles(queries, 'request_duration_seconds'),
      },
      {
        title: 'Requests by route',
        description: 'Finished requests per second.',
        unit: 'reqps',
        lines: [{ query: queries.rate('requests', { by: ['route'] }), legend: '{{route}}' }],
      },
      {
        title: 'Rejections by reason',
        description:
          'Responses that did not come from a backend, by the part of the gateway that rejected the request.',
        unit: 'reqps',
        lines: [
          {
            query: queries.rate('requests', { by: ['reason'], where: 'reason!~"Upstream|DirectResponse"' }),
            legend: '{{reason}}',
          },
        ],
      },
      {
        title: 'New connections',
        description: 'Connections of clients opened per second.',
        unit: 'cps',
        lines: [
          { query: queries.rate('downstream_connections', { by: ['listener'] }), legend: '{{listener}}' },
        ],
      },
    ],
  };
}

function llm(queries: Queries): Row {
  const byModel = { by: ['gen_ai_request_model'] };
  const model = '{{gen_ai_request_model}}';
  return {
    title: 'LLM',
    panels: [
      {
        title: 'Tokens',
        description: 'Tokens per second, by model and direction.',
        unit: 'short',
        lines: [
          {
            query: queries.sumRate('gen_ai_client_token_usage', {
              by: ['gen_ai_request_model', 'gen_ai_token_type'],
            }),
            legend: `${model} {{gen_ai_token_type}}`,
          },
        ],
      },
      {
        title: 'Cost per hour',
        description: 'US dollars at the current rate, by the model cost catalog.',
        unit: 'currencyUSD',
        lines: [{ query: `3600 * ${queries.rate('gen_ai_client_cost_usd', byModel)}`, legend: model }],
      },
      {
        title: 'Calls without an exact price',
        description: 'Calls whose cost is not counted, by the result of the lookup.',
        unit: 'reqps',
        lines: [
          {
            query: queries.rate('cost_catalog_lookups', { by: ['status'], where: 'status!="Exact"' }),
            legend: '{{status}}',
          },
        ],
      },
      {
        title: 'Duration of calls, p95',
        description: 'By model, including the streams of responses.',
        unit: 's',
        lines: [{ query: queries.quantile(0.95, 'gen_ai_server_request_duration', byModel), legend: model }],
      },
      {
        title: 'Time to first token, p95',
        description: 'Of streamed responses, by model.',
        unit: 's',
        lines: [
          { query: queries.quantile(0.95, 'gen_ai_server_time_to_first_token', byModel), legend: model },
        ],
      },
      {
        title: 'Guardrail checks',
        description: 'Checks per second, by phase and what they decided.',
        unit: 'ops',
        lines: [
          {
            query: queries.rate('guardrail_checks', { by: ['phase', 'action'] }),
            legend: '{{phase}} {{action}}',
          },
        ],
      },
    ],
  };
}

function mcp(queries: Queries): Row {
  const tools = queries.rate('mcp_requests', { by: ['server', 'resource'], where: 'method="tools/call"' });
  return {
    title: 'MCP',
    panels: [
      {
        title: 'Messages by method',
        description: 'MCP messages of clients per second.',
        unit: 'reqps',
        lines: [{ query: queries.rate('mcp_requests', { by: ['method'] }), legend: '{{method}}' }],
      },
      {
        title: 'Most called tools',
        description: 'Calls per second.',
        unit: 'reqps',
        lines: [{ query: `topk(10, ${tools})`, legend: '{{server}} {{resource}}' }],
      },
      {
        title: 'Changed tools',
        description: 'Tools whose definition has changed since it was pinned, in the last day.',
        unit: 'short',
        lines: [
          { query: queries.increase('mcp_tool_changes', '1d', { by: ['server'] }), legend: '{{server}}' },
        ],
      },
    ],
  };
}

function gateway(queries: Queries): Row {
  const byInstance = { by: ['instance'] };
  const byCertificate = { by: ['instance', 'file'] };
  return {
    title: 'Gateway',
    panels: [
      {
        title: 'Time in the gateway before the backend, p99',
        description:
          'From the arrival of a request to the call to its backend, policies that call services included.',
        unit: 's',
        lines: [
          { query: queries.quantile(0.99, 'request_processing_seconds', byInstance), legend: '{{instance}}' },
        ],
      },
      {
        title: 'Event loop',
        description: 'Share of time that the busiest process was busy since the last scrape.',
        unit: 'percentunit',
        lines: [
          {
            query: queries.gauge('process_event_loop_utilization_ratio', byInstance, 'max'),
            legend: '{{instance}}',
          },
        ],
      },
      {
        title: 'CPU',
        description: 'Cores in use.',
        unit: 'short',
        lines: [{ query: queries.rate('process_cpu_seconds', byInstance), legend: '{{instance}}' }],
      },
      {
        title: 'Memory',
        description: 'Resident memory of all processes.',
        unit: 'bytes',
        lines: [
          { query: queries.gauge('process_resident_memory_bytes', byInstance), legend: '{{instance}}' },
        ],
      },
      {
        title: 'Configuration',
        description: '1 if the last reload of the file, or of a certificate, succeeded, 0 if it failed.',
        unit: 'short',
        lines: [
          { query: queries.gauge('config_synchronized', byInstance, 'min'), legend: '{{instance}}' },
          {
            query: queries.gauge('tls_certificate_synchronized', byCertificate, 'min'),
            legend: '{{instance}} {{file}}',
          },
        ],
      },
      {
        title: 'Certificates',
        description: 'Time until they expire.',
        unit: 's',
        lines: [
          {
            query: `${queries.gauge('tls_certificate_expiry_timestamp_seconds', byCertificate, 'min')} - time()`,
            legend: '{{instance}} {{file}}',
          },
        ],
      },
      {
        title: 'Workers',
        description: 'Workers that take connections.',
        unit: 'short',
        lines: [{ query: queries.gauge('workers', byInstance), legend: '{{instance}}' }],
      },
    ],
  };
}

/** A panel for a metric that no other one shows. */
function automatic(queries: Queries, { name, type, help }: MetricDescription): Panel {
  const short = name.replace(/^gw_/, '');
  const panel = { title: name, description: `${help}.`, unit: unitOf(short) };
  if (type === 'histogram') return { ...panel, lines: quantiles(queries, short) };
  if (type === 'gauge')
    return {
      ...panel,
      lines: [{ query: queries.gauge(short, { by: ['instance'] }, 'max'), legend: '{{instance}}' }],
    };
  const unit = panel.unit === 'bytes' ? 'Bps' : 'ops';
  return {
    ...panel,
    unit,
    lines: [{ query: queries.rate(short, { by: ['instance'] }), legend: '{{instance}}' }],
  };
}

function unitOf(name: string): string {
  if (/_bytes$/.test(name)) return 'bytes';
  if (/_seconds$|_time_|_duration/.test(name)) return 's';
  return /_ratio$/.test(name) ? 'percentunit' : 'short';
}

/** The model of Grafana's dashboards, as far as it differs from its defaults. */
function dashboard(rows: readonly Row[]): object {
  const panels: object[] = [];
  let id = 0;
  let y = 0;
  for (const { title, panels: own } of rows) {
    panels.push({
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
      panels: [],
    });
    y += 1;
    const perLine = COLUMNS / PANEL.w;
    own.forEach((panel, index) => {
      const gridPos = {
        x: (index % perLine) * PANEL.w,
        y: y + Math.floor(index / perLine) * PANEL.h,
        ...PANEL,
      };
      panels.push(timeSeries(++id, panel, gridPos));
    });
    y += Math.ceil(own.length / perLine) * PANEL.h;
  }
  const variables = [
    { name: 'job', query: 'label_values(gw_build_info, job)' },
    { name: 'instance', query: 'label_values(gw_build_info{job=~"$job"}, instance)' },
  ];
  return {
    uid: 'agctl',
    title: 'agctl',
    tags: ['agctl', 'mcp', 'llm'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
        ...variables.map(({ name, query }) => ({
          name,
          type: 'query',
          datasource: SOURCE,
          query: { query, refId: name },
          includeAll: true,
          multi: true,
          allValue: '.*',
          current: { text: 'All', value: '$__all' },
          refresh: 2,
          sort: 1,
        })),
      ],
    },
    panels,
  };
}

const SOURCE = { type: 'prometheus', uid: '$' + '{datasource}' };

function timeSeries(id: number, { title, description, unit, lines }: Panel, gridPos: object): object {
  return {
    id,
    type: 'timeseries',
    title,
    description,
    datasource: SOURCE,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 8 } }, overrides: [] },
    options: {
      legend: { displayMode: 'table', placement: 'bottom', calcs: ['lastNotNull', 'max'] },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: lines.map(({ query, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: SOURCE,
      expr: query,
      legendFormat: legend,
    })),
  };
}
