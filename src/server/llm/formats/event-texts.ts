import type { Members } from '../json-members.ts';
import type { TextPart, TextPath } from '../texts.ts';

/** What a format says about a text of an event: what it continues, what it is. */
export interface PlacedText {
  /**
   * The text that it continues: events with the same channel carry the parts of one text, such as the content of a choice
   * or the arguments of a tool call. Undefined: the event carries the whole text.
   */
  readonly channel?: string;
  /**
   * Texts that follow each other for the reader, such as those of neighbouring content blocks: they are checked as one.
   * Default: the channel.
   */
  readonly run?: string;
  /** Default: `other`. */
  readonly part?: TextPart;
  /** Arguments of a tool that are not JSON text: a part of one string among them. */
  readonly isPlain?: boolean;
  /** Values that describe or repeat the text, such as token probabilities, and what replaces them if it is masked. */
  readonly derived?: readonly Change[];
}

/** A new value in an event. `json` is JSON text. */
export interface Change {
  readonly path: TextPath;
  readonly json: string;
}

/** What has to happen to an event in its order. */
export interface EventOrder {
  /** Lanes of the event: while it is held, events that follow one of them are held, too. Channels are lanes. */
  readonly lanes: readonly string[];
  readonly follows: readonly string[];
  /** Runs that get no more text, and those whose names continue with a space; `ALL` for all of them. */
  readonly ends?: readonly string[];
  /** The event is removed if the text of this channel was masked: it signs or describes the original text. */
  readonly describes?: string;
}

/** How the events of a wire format carry text. Every string of an event is one, whatever is said here. */
export interface EventTexts {
  /** Later events repeat texts that earlier ones carried in parts. */
  readonly repeatsTexts: boolean;
  /** The member with the whole response, whose members may repeat the request. */
  readonly response?: string;
  /** Why an event cannot be checked; undefined if it can. */
  problem?(event: Members): string | undefined;
  /** The part of the event that is output of the model. Default: all of it. */
  output?(event: Members): Members;
  /** Whether a text that is Base64 is a part of a recording. */
  isRecording?(event: Members, path: TextPath): boolean;
  /** What the text is that a member has as it is. Undefined: a whole text, as all others, such as names and URLs. */
  placeOf(event: Members, path: TextPath): PlacedText | undefined;
  orderOf(event: Members, texts: readonly PlacedText[]): EventOrder;
  /** The edit of an event after `removed` earlier events were removed from the stream. */
  renumbered?(event: Members, removed: number): Change | undefined;
}

/** The lane of all events. */
export const ALL = '*';

/** Events of a format whose clients rely on the order of all events. */
export const IN_ORDER: EventOrder = { lanes: [ALL], follows: [ALL] };

/** An event that clients ignore, which need not be held. */
export const IGNORED: EventOrder = { lanes: [], follows: [] };

/** An index in an event, if it is plausible: at most 1024, which is more than any provider uses. */
export function indexIn(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1_024
    ? value
    : undefined;
}
