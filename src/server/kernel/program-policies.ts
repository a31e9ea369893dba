import { Slot } from './slot.ts';

/** Policies that the program has given with the configuration, which may name them. Of any type: they are checked when they are used. */
export const programPolicies = new Slot<readonly unknown[]>();
