import { Slot } from './slot.ts';

/** Called with the tokens of a model call, input and output together, when it has ended. Set by policies that limit tokens. */
export const tokenListeners = new Slot<((tokens: number) => void)[]>();
