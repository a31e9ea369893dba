import { z } from 'zod';
import { PATH_MODES } from '../kernel/path.ts';
import { UNDERSCORE_MODES } from '../kernel/validate-headers.ts';

/** `config.http`. */
export const requestValidationSchema = z
  .strictObject({
    pathNormalization: z
      .enum(PATH_MODES)
      .default('merge')
      .describe(
        'Paths that servers read in different ways. `merge` makes repeated slashes one and refuses encoded slashes (but in the id of `/v1/models/{id}`) and backslashes with 400; `reject` refuses repeated slashes and `;`, too; `keep` allows all of these, as sent. Dot segments and control characters are always refused.',
      ),
    headersWithUnderscores: z
      .enum(UNDERSCORE_MODES)
      .default('drop')
      .describe(
        'Request headers with an underscore in their name, which some servers take for a hyphen: removed before any policy, refused with 400, or kept.',
      ),
  })
  .prefault({})
  .describe('What is made of request paths and headers before routes and policies see them.');
