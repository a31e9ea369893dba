import type { Members } from '../../json-members.ts';
import { forEachText, NestingError, type TextPart, type TextPath } from '../../texts.ts';
import { failed } from '../guarded-text.ts';

/** A text in an event of a stream. */
export interface EventText {
  /**
   * The text that it continues: events with the same channel carry the parts of one text, such as the content of a choice
   * or the arguments of a tool call. Undefined: the event carries the whole text.
   */
  readonly channel?: string;
  readonly part: TextPart;
  /** Where it is in the event. Empty: the data of the event itself, which is not JSON. */
  readonly path: TextPath;
  readonly text: string;
  /** Arguments of a tool that are no JSON text: a part of one string among them. */
  readonly isPlain?: boolean;
  /** Values that describe or repeat the text, such as token probabilities, and what replaces them if it is masked. */
  readonly derived?: readonly { readonly path: TextPath; readonly json: string }[];
}

/** What a stream format says about one event. */
export interface EventContent {
  readonly texts: readonly EventText[];
  /** Lanes of the event: while it is held, events that follow one of them are held, too. Channels are lanes. */
  readonly lanes: readonly string[];
  readonly follows: readonly string[];
  /** Channels that get no more text, and those whose names continue with a space; `ALL` for all of them. */
  readonly ends?: readonly string[];
  /** The event is removed if the text of this channel was masked: it signs or describes the original text. */
  readonly describes?: string;
}

/** How the events of a wire format carry text. */
export interface StreamFormat {
  /** Later events repeat texts that earlier ones carried in parts. */
  readonly repeatsTexts: boolean;
  /** Reads the JSON object of an event. Throws an `AppError` (503) if it is nested too deeply to check. */
  read(event: Members): EventContent;
  /** The edit of an event after `removed` earlier events were removed from the stream: a path and its new JSON text. */
  renumbered?(
    event: Members,
    removed: number,
  ): { readonly path: TextPath; readonly json: string } | undefined;
}

/** The lane of all events. */
export const ALL = '*';

/** Events of a format whose clients rely on the order of all events. */
export const IN_ORDER = { lanes: [ALL], follows: [ALL] } as const;

/** An event that clients ignore, which need not be held. */
export const IGNORED: EventContent = { texts: [], lanes: [], follows: [] };

/** `forEachText` on model output. Throws an `AppError` (503) for a value that is nested too deeply to check. */
export function visitOutput(...args: Parameters<typeof forEachText>): void {
  try {
    forEachText(...args);
  } catch (error) {
    if (error instanceof NestingError) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
}

/** An index in an event, if it is plausible: at most 1024, which is more than any provider uses. */
export function indexIn(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1_024
    ? value
    : undefined;
}
