import { isRecord } from '../foreign.ts';
import type { TracePlace, TraceSeverity } from './event.ts';

/** A message of any type, including unknown types. Its fields are unvalidated. */
export type AnyMessage = Readonly<Record<string, unknown>> & { readonly type: string };

/** A parsed event: the envelope is validated, the message is only known to have a type. */
export interface ReadEvent {
  readonly start: number | undefined;
  readonly end: number;
  readonly severity: TraceSeverity;
  readonly scope: readonly string[];
  readonly requestId: string | undefined;
  readonly message: AnyMessage;
}

/**
 * Parses one event from this gateway or upstream's, of this version or a later one. Missing fields get defaults, and a
 * message without a type becomes `message`. Returns undefined for input that is not an event.
 */
export function readEvent(json: unknown): ReadEvent | undefined {
  if (!isRecord(json)) return undefined;
  // `{"type":"serialization_error",…}` has no envelope.
  const message = isRecord(json['message']) ? json['message'] : json;
  if (!isMessage(message)) return undefined;
  const { severity, scope, requestId } = json;
  return {
    start: micros(json['eventStart']),
    end: micros(json['eventEnd']) ?? 0,
    severity: isSeverity(severity) ? severity : message.type === 'serialization_error' ? 'error' : 'info',
    scope: Array.isArray(scope) ? scope.filter((part) => typeof part === 'string') : [],
    requestId: typeof requestId === 'string' ? requestId : undefined,
    message,
  };
}

const isMessage = (value: Readonly<Record<string, unknown>>): value is AnyMessage =>
  typeof value['type'] === 'string';

function micros(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function isSeverity(value: unknown): value is TraceSeverity {
  return value === 'success' || value === 'info' || value === 'warn' || value === 'error';
}

export function recordsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** The place in the configuration, as far as the sender gives it. */
export function placeOf(value: Readonly<Record<string, unknown>>): TracePlace | undefined {
  const { configPath, configFile, configLine, configColumn } = value;
  const place = {
    ...(typeof configPath === 'string' ? { configPath } : {}),
    ...(typeof configFile === 'string' ? { configFile } : {}),
    ...(typeof configLine === 'number' ? { configLine } : {}),
    ...(typeof configColumn === 'number' ? { configColumn } : {}),
  };
  return Object.keys(place).length === 0 ? undefined : place;
}

/** `gateway.yaml:23:17` without folders, or the path in the configuration if the file is not known. */
export function placeText({ configFile, configLine, configColumn, configPath }: TracePlace): string {
  const file = configFile?.replace(/^.*[/\\]/s, '');
  if (configLine === undefined) return configPath ?? file ?? '';
  return [file ?? 'config', configLine, configColumn].filter((part) => part !== undefined).join(':');
}
