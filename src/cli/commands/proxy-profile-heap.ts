import type { Run } from '../context.ts';
import { type ProfileOptions, saveProfile } from '../proxy/profile.ts';

export const run: Run<ProfileOptions> = (options, context) =>
  saveProfile('heap', '/debug/pprof/heap', options, context);
