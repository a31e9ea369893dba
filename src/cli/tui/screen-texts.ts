import { cut } from '../../core/render/span.ts';
import { escapeControls } from '../../core/render/width.ts';
import { type Row, rule } from './row.ts';
import type { TraceView } from './trace-store.ts';

/** The screen before the first event: what the command is waiting for, and how to trigger it. */
export function waitingRows({ phase, sends, problem, source }: TraceView, width: number): Row[] {
  const lines =
    problem !== undefined
      ? [problem.text, problem.help, '', 'n tries again, q quits']
      : phase === 'connecting'
        ? [`connecting to ${source}`]
        : sends
          ? ['The request has been sent.']
          : waitingFor(source);
  const title =
    problem !== undefined ? 'No trace' : phase === 'waiting' && !sends ? 'Send a request' : 'Trace';
  return [
    [{ text: rule(title, '', width), tone: 'gray' }],
    [],
    ...lines.map((text): Row => [{ text: cut(`   ${escapeControls(text)}`, width) }]),
  ];
}

/**
 * Requests that work unchanged on any gateway port; `tools/list` alone requires a session first. No line is wider than
 * 80 columns, so that they can be copied; JSON may be broken between tokens.
 */
const waitingFor = (source: string): readonly string[] => [
  'MCP    curl -sS <gateway>/mcp \\',
  "         -H 'content-type: application/json' \\",
  "         -H 'accept: application/json, text/event-stream' \\",
  `         -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":`,
  `              {"protocolVersion":"2025-06-18","capabilities":{},`,
  `               "clientInfo":{"name":"curl","version":"1"}}}'`,
  '',
  'LLM    curl -sS <gateway>/v1/chat/completions \\',
  "         -H 'content-type: application/json' \\",
  `         -d '{"model":"m1","messages":[{"role":"user","content":"hi"}]}'`,
  '',
  '<gateway> is an address of this gateway, paths are those of its routes.',
  'Or let agctl send it:',
  `   agctl proxy trace --admin ${source} -- <url> -H … -d …`,
];

/** Describes in one line which request is traced. Safe to print. */
export function awaited({ match, count, traces }: TraceView): string {
  const which =
    count > 1 && traces.length < count ? `Request ${traces.length + 1} of ${count}: the next` : 'The next';
  const before = traces.length > 0 ? '  [ shows the previous trace' : '';
  return match === undefined
    ? `${which} request is traced; other requests are not affected.${before}`
    : `${which} request for which this is true: ${escapeControls(match)}${before}`;
}

const HELP: readonly string[] = [
  'Move',
  '  ↑ ↓  j k      previous step, next step      g G  first, last',
  '  PgUp PgDn     a page                       [ ]  previous, next trace',
  '  tab           other pane                   enter  zoom the step',
  'Views of the selected step',
  '  v  explained: rules, values, places        e  the event as sent',
  '  s  state of the request after it           d  what it changed',
  '  t  time of every step                      f  YAML or JSON    z  long lines',
  'Find',
  '  /  filter by words     !  next problem     .  show snapshots and bodies too',
  'Do',
  '  n  trace the next request, or send it again',
  '  w  save as JSON Lines                      c  copy this pane',
  'Quit',
  '  q  ctrl-c  esc; a summary of the trace stays in the terminal',
  '  ctrl-z        suspend; fg resumes',
  '',
  'Marks: ✓ ok   ! warning   ✗ error   – skipped   ○ not reached   … running',
];

export const helpRows = (width: number): Row[] => keyRows(HELP, '? or esc closes', width);

/** A screen that explains keys: texts without indentation are headings. */
export function keyRows(help: readonly string[], closing: string, width: number): Row[] {
  return [
    [{ text: rule('Keys', closing, width), tone: 'cyan' }],
    ...help.map((text): Row => [{ text: cut(` ${text}`, width), isBold: !text.startsWith(' ') }]),
  ];
}
