import type { Run } from '../context.ts';
import { type ProfileOptions, saveProfile } from '../proxy/profile.ts';

export const run: Run<ProfileOptions> = (options, context) =>
  saveProfile('cpu', '/debug/pprof/profile', options, context);
