import { LIMITS } from '../../../../core/limits.ts';
import { isBase64, WORD_LENGTH } from '../../../guardrails/encoded-text.ts';
import type { EventOrder, EventTexts, PlacedText } from '../../formats/event-texts.ts';
import type { Members } from '../../json-members.ts';
import { NestingError, type TextPart, type TextPath } from '../../texts.ts';
import type { Echo } from '../echo.ts';
import { forEveryText, type ReadText } from '../every-text.ts';
import { uncheckable } from '../guarded-text.ts';

/** A text in an event of a stream. */
export interface EventText extends PlacedText, Pick<ReadText, 'text' | 'path' | 'encode'> {
  /** Default: `text`. */
  readonly form?: ReadText['form'];
  readonly part: TextPart;
}

/** The texts of an event, and its place among others. */
export interface EventContent extends EventOrder {
  readonly texts: readonly EventText[];
}

/**
 * Reads the JSON object of an event; every string of it is a text, except those that repeat the request (`echo`), and recordings.
 * Throws an `AppError` (502) if it cannot be checked.
 */
export function readEvent(format: EventTexts, event: Members, echo?: Echo): EventContent {
  const problem = format.problem?.(event);
  if (problem !== undefined) throw uncheckable('response', problem);
  const output = format.output?.(event) ?? event;
  const texts = eventTexts(output, (path) => format.placeOf(output, path)).filter(({ text, path }) => {
    if (path[0] === format.response && echo?.repeats(text, path.slice(1)) === true) return false;
    return format.isRecording?.(output, path) !== true || text.length < WORD_LENGTH || !isBase64(text);
  });
  return { ...format.orderOf(output, texts), texts };
}

/**
 * Every text of an event. `place` says what a text is that its member has as it is; all others, such as names and URLs, are whole
 * texts. Throws an `AppError` (502) for an event that is nested too deeply to check.
 */
export function eventTexts(event: Members, place: (path: TextPath) => PlacedText | undefined): EventText[] {
  const texts: EventText[] = [];
  try {
    forEveryText(
      event,
      (found) => {
        const { path, form } = found;
        const placed = form === 'fixed' || form === 'url' ? undefined : place(path);
        const part = placed?.part ?? 'other';
        const goesOn = (form === 'text' || form === 'derived') && found.encode === undefined;
        texts.push({ ...found, ...(goesOn && placed), part });
      },
      [],
      EVENT_DEPTH,
    );
  } catch (error) {
    if (error instanceof NestingError) throw uncheckable('response', 'a text is nested too deeply');
    throw error;
  }
  return texts;
}

/** Responses repeat definitions of tools, whose schemas are deeper than messages. */
const EVENT_DEPTH = LIMITS.jsonDepth;
