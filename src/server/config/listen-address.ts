import { z } from 'zod';
import { LISTEN_ADDRESS_FORMS, parseListenAddress } from '../../core/listen.ts';

/** Address of a server of the process, as text that `parseListenAddress` reads. */
export const listenAddressSchema = z
  .string()
  .refine((text) => parseListenAddress(text) !== undefined, { error: LISTEN_ADDRESS_FORMS });
