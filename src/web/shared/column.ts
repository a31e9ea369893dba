import type { ReactNode } from 'react';

/** A column of a table with many rows. */
export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ReactNode;
  /** The text of the cell, which decides how wide the column is. Default: what `cell` returns. */
  readonly text?: (row: Row) => string;
  /** Gives way first if there is not enough room, instead of pushing others out of sight. */
  readonly shrinks?: boolean;
  /** Default: every screen. */
  readonly shownOn?: 'narrow' | 'wide';
  readonly isNumber?: boolean;
}
