import { LIMITS } from '../../../../core/limits.ts';
import type { Members } from '../../json-members.ts';
import { NestingError, type TextPart, type TextPath } from '../../texts.ts';
import type { Echo } from '../echo.ts';
import { forEveryText, type ReadText } from '../every-text.ts';
import { failed } from '../guarded-text.ts';

/** A text in an event of a stream. */
export interface EventText extends Pick<ReadText, 'text' | 'path' | 'encode'> {
  /** Default: `text`. */
  readonly form?: ReadText['form'];
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
  readonly part: TextPart;
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
  /** Runs that get no more text, and those whose names continue with a space; `ALL` for all of them. */
  readonly ends?: readonly string[];
  /** The event is removed if the text of this channel was masked: it signs or describes the original text. */
  readonly describes?: string;
}

/** How the events of a wire format carry text. */
export interface StreamFormat {
  /** Later events repeat texts that earlier ones carried in parts. */
  readonly repeatsTexts: boolean;
  /**
   * Reads the JSON object of an event; every string of it is a text, except those that repeat the request (`echo`). Throws an
   * `AppError` (503) if it is nested too deeply to check.
   */
  read(event: Members, echo?: Echo): EventContent;
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

/** What a format says about a text: what it continues, what it is. */
export type Placed = Omit<Partial<EventText>, 'text' | 'path'>;

/**
 * Every text of an event. `place` says what a text is that its member has as it is; all others, such as names and URLs, are whole
 * texts. Default of the part: `other`. Throws an `AppError` (503) for an event that is nested too deeply to check.
 */
export function eventTexts(event: Members, place: (path: TextPath) => Placed | undefined): EventText[] {
  const texts: EventText[] = [];
  try {
    forEveryText(
      event,
      (found) => {
        const { path, form } = found;
        const placed = form === 'fixed' || form === 'url' ? undefined : place(path);
        const goesOn = (form === 'text' || form === 'derived') && found.encode === undefined;
        texts.push({ ...found, part: placed?.part ?? 'other', ...(goesOn && placed) });
      },
      [],
      EVENT_DEPTH,
    );
  } catch (error) {
    if (error instanceof NestingError) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
  return texts;
}

/** Responses repeat definitions of tools, whose schemas are deeper than messages. */
const EVENT_DEPTH = LIMITS.jsonDepth;

/** An index in an event, if it is plausible: at most 1024, which is more than any provider uses. */
export function indexIn(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1_024
    ? value
    : undefined;
}
