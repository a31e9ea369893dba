import type { GraphData } from './load.ts';

export type ToLayout =
  | {
      readonly kind: 'start';
      readonly count: number;
      readonly links: Uint32Array;
      readonly isInstant: boolean;
    }
  /** The buffer of a frame that has been drawn. */
  | { readonly kind: 'back'; readonly positions: Float32Array<ArrayBuffer> }
  /** Fixes a node at a position, or releases it. */
  | {
      readonly kind: 'hold';
      readonly index: number;
      readonly at: { readonly x: number; readonly y: number } | null;
    };

export interface FromLayout {
  /** x and y of each node. */
  readonly positions: Float32Array<ArrayBuffer>;
  readonly isSettled: boolean;
}

export interface Layout {
  hold(index: number, at: { readonly x: number; readonly y: number } | null): void;
  /** Returns the buffer of a frame for reuse. */
  giveBack(positions: Float32Array<ArrayBuffer>): void;
  close(): void;
}

/**
 * Lays out the nodes in a worker.
 *
 * @param isInstant displays only the final layout, without animation
 */
export function startLayout(
  { nodes, edges }: GraphData,
  isInstant: boolean,
  onFrame: (frame: FromLayout) => void,
): Layout {
  const worker = new Worker(new URL('./layout.worker.ts', import.meta.url), { type: 'module' });
  const send = (message: ToLayout, transfer: Transferable[] = []): void =>
    worker.postMessage(message, transfer);
  worker.addEventListener('message', ({ data }: MessageEvent<FromLayout>) => onFrame(data));
  const links = new Uint32Array(edges.flatMap(({ from, to }) => [from, to]));
  send({ kind: 'start', count: nodes.length, links, isInstant }, [links.buffer]);
  return {
    hold: (index, at) => send({ kind: 'hold', index, at }),
    giveBack: (positions) => send({ kind: 'back', positions }, [positions.buffer]),
    close: () => worker.terminate(),
  };
}
