import { Slot } from './slot.ts';

/** Called with the sum of input and output tokens when a model call has ended. Set by policies that limit tokens. */
export const tokenListeners = new Slot<((tokens: number) => void)[]>();
