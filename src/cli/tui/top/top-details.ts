import type { Tone } from '../../../core/render/span.ts';
import { escapeControls } from '../../../core/render/width.ts';
import { fieldText, subjectOf } from '../../../core/requests/finished.ts';
import { markOf, problemText } from '../../../core/requests/line.ts';
import { wrap } from '../row.ts';
import type { TopRow } from './top-model.ts';

export interface DetailLine {
  readonly text: string;
  readonly tone?: Tone | undefined;
}

/** Names are padded to this width; longer ones push their value. */
const NAME = 26;
/** Values narrower than this begin on a line of their own. */
const VALUE = 24;

/** A request with all of its fields, wrapped to a width. Safe to print. */
export function requestDetails({ fields, isOpen }: TopRow, hasTrace: boolean, width: number): DetailLine[] {
  const { mark, tone } = markOf(fields);
  const problem = problemText(fields);
  const lines: DetailLine[] = [
    { text: `${isOpen ? '…' : mark} ${subjectOf(fields)}`, tone: isOpen ? 'cyan' : tone },
    ...(problem === '' ? [] : [{ text: `  ${problem}`, tone }]),
    { text: '' },
    ...Object.keys(fields).flatMap((name) =>
      fieldLines(escapeControls(name), fieldText(fields, name), width).map((text) => ({ text })),
    ),
    { text: '' },
    {
      text: hasTrace
        ? 't shows the recorded trace of this request'
        : 't traces the next request with this method and path; r records all traces',
      tone: 'gray',
    },
  ];
  return lines.flatMap(({ text, tone: of }) => wrap(text, width).map((part) => ({ text: part, tone: of })));
}

function fieldLines(name: string, value: string, width: number): string[] {
  const line = `${name.padEnd(NAME)} ${value}`;
  if (line.length <= width) return [line];
  const indent = width - NAME - 1 >= VALUE ? NAME + 1 : 2;
  const parts = wrap(value, Math.max(1, width - indent)).map((part) => ' '.repeat(indent) + part);
  if (indent === 2 || name.length > NAME) return [name, ...parts];
  return [name.padEnd(indent) + (parts[0] ?? '').slice(indent), ...parts.slice(1)];
}
