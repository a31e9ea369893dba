import { isRecord, shownValue, textIn } from '../../core/foreign.ts';
import { escapeControls } from '../../core/render/width.ts';
import { type AnyMessage, placeOf, placeText, recordsOf } from '../../core/trace/read-event.ts';
import { requestLine, sourceOf } from '../../core/trace/request-line.ts';
import { compact, effectivePolicies, policyName } from '../../core/trace/summary.ts';
import { closingLine, durationText } from '../../core/trace/verdict.ts';
import type { TraceModel, TraceStep } from '../../core/trace-model.ts';

/** Snapshots are long, and each repeats most of the one before. */
const LEFT_OUT = new Set(['responseSnapshot', 'bodySnapshot', 'traceSampling', 'requestStarted']);
const NAME = 18;
const COLUMN = ' '.repeat(14);

/** One step as lines of text, for pipes and screen readers; empty for steps that only the screen displays. */
export function stepText(step: TraceStep, before: TraceModel): string {
  const { message } = step;
  if (LEFT_OUT.has(message.type)) return '';
  if (message.type === 'requestSnapshot')
    return before.state === undefined ? line(step, 'request', requestText(step)) : '';
  if (message.type === 'policySelection' && effectivePolicies(message['effectivePolicy']).length === 0)
    return '';
  return (
    line(step, nameOf(message, step.label), sentence(step)) +
    details(step)
      .map((text) => `${COLUMN}${escapeControls(text)}\n`)
      .join('')
  );
}

function line({ end, start, place, scope }: TraceStep, name: string, text: string): string {
  const moment = (end / 1000).toFixed(2).padStart(9);
  const inside = scope.length === 0 ? '' : `${scope.join(' > ')}: `;
  const notes = [
    start === undefined ? '' : durationText(end - start),
    place === undefined ? '' : placeText(place),
  ];
  const tail = notes.filter((note) => note !== '').join('  ');
  return `${escapeControls(`${moment} ms  ${name.padEnd(NAME)} ${inside}${text}${tail === '' ? '' : `   ${tail}`}`)}\n`;
}

function requestText({ state }: TraceStep): string {
  const source = sourceOf(state);
  return `${requestLine(state)}${source === '' ? '' : ` from ${source}`}`;
}

function nameOf(message: AnyMessage, label: string): string {
  if (message.type === 'policy' || message.type === 'authorizationResult') return policyName(message);
  return label;
}

function sentence({ message, summary }: TraceStep): string {
  if (message.type === 'policy')
    return summary
      .slice(summary.indexOf(policyName(message)) + policyName(message).length)
      .replace(/^:? /, '');
  if (message.type === 'authorizationResult') return summary.replace(/^denied/, 'DENIED');
  return summary;
}

/** Details of a step: why other routes did not match, results of subexpressions, which rule decided. */
export function details({ message }: TraceStep): string[] {
  switch (message.type) {
    case 'routeSelection':
      return recordsOf(message['skippedRoutes']).map(
        (route) => `not ${textIn(route['route'])}: ${textIn(route['reason'])}`,
      );
    case 'cel':
      return celValues(message);
    case 'authorizationResult':
      return recordsOf(message['rules']).map((rule, index) => ruleText(rule, index));
    default:
      return [];
  }
}

export function ruleText(rule: Readonly<Record<string, unknown>>, index: number): string {
  const place = placeText(placeOf(rule) ?? {});
  const notes = [rule['decided'] === true ? 'decided' : '', textIn(rule['problem']), place].filter(
    (note) => note !== '',
  );
  const mode = textIn(rule['mode']);
  return `rules[${index}] ${mode === '' ? '' : `${mode}: `}${textIn(rule['name'])} => ${shownValue(rule['matched'])}${notes.length === 0 ? '' : `   ${notes.join(', ')}`}`;
}

const LONGEST = 200;

/** `jwt.sub = "ann"` for every subexpression that is not a literal; upstream's gateway does not send them. */
export function celValues({ expr, parts, result }: AnyMessage): string[] {
  const source = textIn(expr);
  const seen = new Set<string>([source]);
  const values: string[] = [];
  for (const part of recordsOf(parts)) {
    const { start, end, value } = part;
    if (typeof start !== 'number' || typeof end !== 'number') continue;
    const text = source.slice(start, end);
    const shown =
      isRecord(value) && typeof value['error'] === 'string' ? `error: ${value['error']}` : compact(value);
    if (seen.has(text) || text === shown || isLiteral(text)) continue;
    seen.add(text);
    values.push(`${text} = ${shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown}`);
  }
  return result === undefined && values.length === 0 ? [] : values;
}

const isLiteral = (text: string): boolean =>
  /^(?:["'\d[{-].*|true|false|null)$/s.test(text) &&
  !/[a-z]\w*\s*[.(]/i.test(text.replace(/"[^"]*"|'[^']*'/g, ''));

/** The last line of a trace. */
export function endText(trace: TraceModel): string {
  const lost = trace.dropped === 0 ? '' : `  (${trace.dropped} events missing)`;
  return `${escapeControls(`${closingLine(trace)}${lost}`)}\n`;
}
