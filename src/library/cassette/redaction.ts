import { isSensitiveName, REDACTED, redactTarget } from '../../core/credentials.ts';
import { isRecord } from '../../core/foreign.ts';
import { LruMap } from '../../core/lru-map.ts';
import { byForm, Redactor } from '../../core/redact.ts';
import { isLast } from './cut.ts';
import type { Body, StreamEvent } from './format.ts';

/** What of a configuration decides what is secret. */
export interface Rules {
  redactor(): Redactor;
  readonly secretNames: { readonly headers: ReadonlySet<string>; readonly parameters: ReadonlySet<string> };
  /** The record of requests, if the configuration has one: its redaction applies too. */
  readonly record?: { value(value: unknown): unknown } | undefined;
}

/** Credentials of clients that are remembered: servers may repeat them in later answers. */
const KNOWN_CREDENTIALS = 200;

/**
 * Headers that are kept: what others contain nobody knows. Without them, no client or server behaves differently, except to who is
 * signed in.
 */
const KEPT_HEADERS =
  /^(?:accept|access-control-.+|allow|anthropic-(?:version|beta)|cache-control|content-(?:disposition|language|type)|location|mcp-(?:method|name|param-.+|protocol-version)|openai-beta|origin|retry-after|user-agent|vary|www-authenticate|(?:x-)?ratelimit-.+|anthropic-ratelimit-.+|x-accel-buffering)$/;

/** Removes secrets from what is recorded: those of the configuration, and those that clients send. */
export class Redaction {
  readonly #credentials = new LruMap<string, string>(KNOWN_CREDENTIALS);
  #ofClients: Redactor | undefined;

  /** Notes the credentials of a message by the names of its headers and parameters. */
  note(headers: Iterable<readonly [name: string, value: string]>, target: string, rules: Rules): void {
    for (const [name, value] of headers)
      if (isSensitiveName(name, rules.secretNames.headers)) this.#remember(value);
    for (const [name, value] of new URLSearchParams(target.split('?')[1] ?? ''))
      if (isSensitiveName(name, rules.secretNames.parameters)) this.#remember(value);
  }

  #remember(value: string): void {
    // With and without a scheme, which is not a secret itself; and the pairs of cookies.
    const [, scheme = '', credentials = value] = /^([a-z][\w-]*) +(\S.*)$/is.exec(value) ?? [];
    const parts = [credentials, ...credentials.split(/[\s;,]+/)];
    parts.push(...value.split(/;\s*/).map((pair) => pair.replace(/^[^=]*=/, '')));
    if (scheme.toLowerCase() === 'basic') {
      const plain = Buffer.from(credentials, 'base64').toString();
      parts.push(plain, plain.slice(plain.indexOf(':') + 1));
    }
    for (const part of parts) {
      if (part.length < SHORTEST || this.#credentials.get(part) !== undefined) continue;
      this.#credentials.set(part, part);
      this.#ofClients = undefined;
    }
  }

  text(text: string, rules: Rules): string {
    return this.#encoded(rules.redactor().line(this.#fromClients.text(text)), rules);
  }

  get #fromClients(): Redactor {
    this.#ofClients ??= new Redactor(this.#credentials.values());
    return this.#ofClients;
  }

  #known(text: string, rules: Rules): string {
    return rules.redactor().known(this.#fromClients.known(text));
  }

  /** In base64, a secret looks different behind other text, such as the name of a user. */
  #encoded(text: string, rules: Rules): string {
    return text.replace(BASE64, (run) => {
      if (run.length > ENCODED_CREDENTIAL) return run;
      // What precedes may be made of the same characters.
      const isSecret = [0, 1, 2, 3].some((start) => {
        const plain = Buffer.from(run.slice(start), 'base64').toString();
        return this.#known(plain, rules) !== plain;
      });
      return isSecret ? REDACTED : run;
    });
  }

  target(target: string, rules: Rules): string {
    return this.text(redactTarget(target, rules.secretNames.parameters), rules);
  }

  headers(headers: Iterable<readonly [name: string, value: string]>, rules: Rules): Record<string, string> {
    const kept = [...headers]
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => KEPT_HEADERS.test(name) && !isSensitiveName(name, rules.secretNames.headers));
    return Object.fromEntries(kept.map(([name, value]) => [name, this.text(value, rules)]));
  }

  value(value: unknown, rules: Rules): unknown {
    const named = harmless(value, rules.redactor().value(value));
    const clean = mapTexts(named, (text) => this.text(text, rules));
    return rules.record === undefined ? clean : harmless(clean, rules.record.value(clean));
  }

  body(body: Body | undefined, rules: Rules): Body | undefined {
    if (body === undefined || 'omitted' in body) return body;
    if ('json' in body) return { json: this.value(body.json, rules) };
    if ('text' in body) return { text: this.text(body.text, rules) };
    if ('base64' in body)
      return this.#hasSecret(body.base64, rules) ? { omitted: 'it contains a secret' } : body;
    return {
      form: body.form.map(({ base64, text, ...part }) => {
        if (isSensitiveName(part.name)) return { ...part, text: REDACTED };
        if (text !== undefined) return { ...part, text: this.text(text, rules) };
        return { ...part, base64: base64 === undefined || this.#hasSecret(base64, rules) ? '' : base64 };
      }),
    };
  }

  #hasSecret(base64: string, rules: Rules): boolean {
    const bytes = Buffer.from(base64, 'base64').toString('latin1');
    return this.text(bytes, rules) !== bytes;
  }

  events(events: readonly StreamEvent[], rules: Rules): StreamEvent[] {
    const clean = events.map(({ json, text, ...event }) => ({
      ...event,
      ...(json !== undefined && { json: this.value(json, rules) }),
      ...(text !== undefined && { text: this.text(text, rules) }),
    }));
    return this.#joined(clean, rules);
  }

  /**
   * A model sends a text in pieces, and a secret may be spread over some: then the first piece has the whole text without it, and
   * the others none.
   */
  #joined(events: readonly StreamEvent[], rules: Rules): StreamEvent[] {
    const texts = new Map<string, string>();
    const add = (path: string, piece: string): string => {
      texts.set(path, (texts.get(path) ?? '') + piece);
      return piece;
    };
    for (const event of events) mapEvent(event, add);
    const changed = new Map<string, string>();
    for (const [path, text] of texts) {
      // Events that are texts may as well be lines, of which one does not tell what the next one is.
      const clean = path.startsWith(PLAIN) ? this.#known(text, rules) : this.text(text, rules);
      if (clean !== text) changed.set(path, clean);
    }
    if (changed.size === 0) return [...events];
    return events.map((event) =>
      mapEvent(event, (path, piece) => {
        const clean = changed.get(path);
        if (clean !== undefined) changed.set(path, '');
        return clean ?? piece;
      }),
    );
  }
}

/** A value without what looks like a credential, for messages; `name` is that of its member. */
export const redactedByForm = (value: unknown, name: string): unknown =>
  mapTexts(harmless(value, byForm.value(value, name)), (text) => byForm.line(text));

/** As in `Redactor`: shorter values would match other text by chance. */
const SHORTEST = 6;

/** What may be base64, and how long one with a credential is at most. */
const BASE64 = /[A-Za-z0-9+/_-]{10,}/g;
const ENCODED_CREDENTIAL = 8192;

/** Members whose values are pieces of one text in the streams of the APIs of models. */
const PIECES = new Set([
  'content',
  'delta',
  'text',
  'arguments',
  'partial_json',
  'thinking',
  'reasoning',
  'reasoning_content',
  'refusal',
]);

/** Members that tell to which of several texts a piece belongs: choice, call of a tool, block or item. */
const PLACES = ['index', 'output_index', 'content_index', 'summary_index'];

type Change = (path: string, piece: string) => string;

/** The path of events that are texts, before their name. */
const PLAIN = 'text:';

function mapEvent(event: StreamEvent, change: Change): StreamEvent {
  if (event.json !== undefined) return { ...event, json: mapPieces(event.json, change, '') };
  if (event.text === undefined || isLast(event)) return event;
  return { ...event, text: change(PLAIN + (event.event ?? ''), event.text) };
}

function mapPieces(value: unknown, change: Change, path: string): unknown {
  if (Array.isArray(value))
    return value.map((item, index) =>
      mapPieces(item, change, placeIn(item) === '' ? `${path}[${index}]` : path),
    );
  if (!isRecord(value) || isExactNumber(value)) return value;
  const place = path + placeIn(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const at = `${place}.${name}`;
      const isPiece = typeof member === 'string' && PIECES.has(name);
      return [name, isPiece ? change(at, member) : mapPieces(member, change, at)];
    }),
  );
}

function placeIn(value: unknown): string {
  if (!isRecord(value)) return '';
  const places = PLACES.flatMap((name) =>
    typeof value[name] === 'number' ? [`${name}=${value[name]}`] : [],
  );
  // Some services give each event another id of the item.
  if (places.length === 0 && typeof value['item_id'] === 'string') places.push(value['item_id']);
  return places.length === 0 ? '' : `[${places.join()}]`;
}

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (!isRecord(value) || isExactNumber(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      HARMLESS.has(name) ? member : mapTexts(member, change),
    ]),
  );
}

/** A number that is kept as its text (`JSON.rawJSON`). */
export const isExactNumber = (value: object): boolean =>
  Object.getPrototypeOf(value) === null && 'rawJSON' in value && Object.isFrozen(value);

/** Members whose names sound like a credential, but that are not one: a name for a call that the client has chosen. */
const HARMLESS = new Set(['progressToken']);

/** Puts back what the names of members have redacted for nothing: `HARMLESS`, exact numbers, and tokens of the texts of models. */
function harmless(before: unknown, after: unknown, isToken = false): unknown {
  if (Array.isArray(before) && Array.isArray(after))
    return before.map((item, index) => harmless(item, after[index], isToken));
  if (!isRecord(before)) return after;
  if (isExactNumber(before)) return before;
  if (!isRecord(after)) return after;
  const renamed = Object.keys(after);
  return Object.fromEntries(
    Object.entries(before).map(([name, member], index) => {
      const key = renamed[index] ?? name;
      const isKept = HARMLESS.has(name) || (isToken && name === 'token');
      return [key, isKept ? member : harmless(member, after[key], isToken || name === 'logprobs')];
    }),
  );
}
