import { Box, Text } from 'ink';
import type { ReactNode } from 'react';
import type { Span } from '../../core/render/span.ts';
import type { Row } from './row.ts';
import type { Size } from './screen.ts';

interface Props {
  readonly rows: readonly Row[];
  readonly size: Size;
  readonly hasColor: boolean;
}

/** Draws the rows of a screen. */
export function Rows({ rows, size, hasColor }: Props): ReactNode {
  return (
    <Box flexDirection="column" width={size.columns} height={Math.max(1, size.rows - 1)}>
      {rows.map((row, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row of the screen is identified by its position.
        <Line key={index} row={row} hasColor={hasColor} />
      ))}
    </Box>
  );
}

function Line({ row, hasColor }: { readonly row: Row; readonly hasColor: boolean }): ReactNode {
  return (
    <Text wrap="truncate">
      {row.length === 0
        ? ' '
        : row.map((span, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a span of a row is identified by its position.
            <Text key={index} {...styleOf(span, hasColor)}>
              {span.text}
            </Text>
          ))}
    </Text>
  );
}

function styleOf(
  { tone, isBold, isSelected }: Span,
  hasColor: boolean,
): { color?: string; bold?: boolean; inverse?: boolean } {
  // Without color, the symbols carry the meaning: a selected step has an arrow, a failed one a cross.
  if (!hasColor) return {};
  return {
    ...(tone === undefined ? {} : { color: tone }),
    ...(isBold ? { bold: true } : {}),
    ...(isSelected ? { inverse: true } : {}),
  };
}
