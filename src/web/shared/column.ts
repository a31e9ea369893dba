import type { ReactNode } from 'react';

/** By width: below 48 rem, below 64 rem, where the navigation goes beside the content, and from there on. */
export type Screen = 'phone' | 'tablet' | 'desktop';

/** A column of a table with many rows. */
export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ReactNode;
  /** The text of the cell, which decides how wide the column is. Default: what `cell` returns. */
  readonly text?: (row: Row) => string;
  /** Gives way first if there is not enough room, instead of pushing others out of sight. */
  readonly shrinks?: boolean;
  /** Default: every screen. */
  readonly shownOn?: readonly Screen[];
  readonly isNumber?: boolean;
}
