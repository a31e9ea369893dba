import { outcomeOfFields } from '../core/outcome.ts';
import type { BackendView, GatewayView, Overview, RouteView } from '../core/overview.ts';
import { counted } from '../core/render/counted.ts';
import type { RecentRequest } from '../server/observe/recent-requests.ts';

/** HTML that needs no escaping. */
class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Builds HTML from a template. Escapes every value unless it is HTML already, and joins lists. Characters that control
 * terminals or reverse the direction of text are shown as escapes.
 */
function html(parts: TemplateStringsArray, ...values: readonly unknown[]): Html {
  let text = parts[0] ?? '';
  for (const [index, value] of values.entries()) text += shown(value) + (parts[index + 1] ?? '');
  return new Html(text);
}

function shown(value: unknown): string {
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(shown).join('');
  if (value === undefined || value === null) return '';
  return String(value)
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
    .replace(
      /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu,
      (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );
}

/** The state of a gateway as one page without scripts. */
export function statusPage(overview: Overview, requests: readonly RecentRequest[]): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="10">
<title>agctl: ${overview.config}</title>
<link rel="stylesheet" href="/ui/status.css">
</head>
<body>
<header><h1>agctl</h1><p>${overview.version} · ${overview.config} · up ${duration(overview.uptimeSeconds)} · ${overview.openRequests} open requests · log level ${overview.logLevel}</p></header>
<main>
${problems('Problems', overview.problems)}${problems('The changed configuration is not loaded', overview.reload?.failure)}
<h2>Gateways</h2>
${overview.gateways.map(gateway)}
<h2>Recent requests</h2>
${recent(requests)}
<h2>More</h2>
<ul>
${LINKS.map(([path, what]) => html`<li><a href="${path}">${path}</a> ${what}</li>\n`)}</ul>
</main>
</body>
</html>
`.text;
}

const LINKS = [
  ['/config_dump', 'the active configuration'],
  ['/api/overview', 'this page as JSON'],
  ['/api/requests', 'recent requests as JSON'],
  ['/api/config', 'the configuration file without secrets'],
  ['/memory', 'memory and every bounded buffer'],
  ['/metrics', 'metrics'],
  ['/logging', 'log levels'],
  ['/debug/tasks', 'tasks that are running now'],
  ['/debug/pprof/profile', 'a CPU profile of ten seconds'],
  ['/debug/pprof/heap', 'a heap profile of ten seconds'],
] as const;

function problems(title: string, of: Overview['problems'] | undefined): Html {
  const found = of?.diagnostics ?? [];
  if (found.length === 0) return html``;
  return html`<section class="problems"><h2>${title}</h2><ul>
${found.map(
  ({ severity, code, message, help, range }) =>
    html`<li><strong>${severity} ${code}</strong> ${message} <span>${range.file}:${range.start.line}</span>${help === undefined ? '' : html`<br>${help}`}</li>\n`,
)}</ul></section>`;
}

function gateway({ name, url, routes }: GatewayView): Html {
  return html`<section><h3>${name} <a href="${url}">${url}</a></h3>
<table><thead><tr><th>Route</th><th>Matches</th><th>Policies</th><th>Backends</th></tr></thead><tbody>
${routes.map(routeRow)}</tbody></table></section>
`;
}

function routeRow({ title, hostnames, matches, policies, backends, line }: RouteView): Html {
  return html`<tr><td>${title}<br><span>line ${line}</span></td><td>${[...hostnames, ...matches].join(', ')}</td><td>${policies.join(', ')}</td><td>${backends.map(backendCell)}</td></tr>
`;
}

function backendCell({ kind, address, sessions, targets = [], models = [] }: BackendView): Html {
  return html`<p>${kind} ${address}${sessions === undefined ? '' : `, ${counted(sessions, 'session')}`}</p><ul>
${targets.map(
  ({ name, kind: way, at, state, connections, problem }) =>
    html`<li class="${state}">${MARKS[state]} ${name} (${way}: ${at}) ${state}, ${counted(connections, 'connection')}${problem === undefined ? '' : `: ${problem}`}</li>\n`,
)}${models.map(
  ({ name, provider, address: to, requests, latency, failures }) =>
    html`<li class="${failures > 0 ? 'failing' : 'ready'}">${failures > 0 ? '✗' : '✓'} ${name} (${provider} ${to}) ${counted(requests, 'request')}, ${latency} ms</li>\n`,
)}</ul>`;
}

/** Symbols, so that color is never the only distinction. */
const MARKS = { ready: '✓', connecting: '…', idle: '·', failing: '✗' } as const;

const SHOWN_FIELDS = ['http.method', 'http.path', 'route', 'http.status', 'protocol', 'duration'];
const OUTCOMES = { good: '✓', warn: '!', bad: '✗' } as const;

function recent(requests: readonly RecentRequest[]): Html {
  if (requests.length === 0) return html`<p>None yet.</p>`;
  return html`<table><thead><tr><th>Time</th>${SHOWN_FIELDS.map((name) => html`<th>${name}</th>`)}<th>outcome</th></tr></thead><tbody>
${requests.map(requestRow)}</tbody></table>`;
}

/** The status alone does not show every failure. */
function requestRow({ time, fields }: RecentRequest): Html {
  const { outcome, problem } = outcomeOfFields(fields);
  return html`<tr><td>${time}</td>${SHOWN_FIELDS.map((name) => html`<td>${fields[name]}</td>`)}<td>${OUTCOMES[outcome]} ${problem ?? ''}</td></tr>\n`;
}

function duration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${seconds} s`;
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}

export const STATUS_STYLE = `:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { margin: 0; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid color-mix(in srgb, currentcolor 25%, transparent); padding: 0.3rem 0.6rem 0.3rem 0; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
td p, td ul { margin: 0; }
td ul { padding-left: 1rem; }
span { opacity: 0.75; }
.problems { border-left: 4px solid #c60; padding-left: 1rem; }
.failing { font-weight: 600; }
`;
