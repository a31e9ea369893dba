import { z } from 'zod';
import { durationSchema, durationText } from '../../core/duration.ts';
import { isSwitchWord, mapping, nonEmpty } from '../../core/schema/mapping.ts';

const DAY = 24 * 3_600_000;

/** `config.audit`. */
export const auditSettingsSchema = z.lazy(() =>
  mapping(
    'Where it is kept who has changed what through the admin server: in the log, in `config.database` and in a file.',
    {
      file: nonEmpty
        .refine((file) => !isSwitchWord(file), {
          error:
            'expected the path of a file: to have none, delete the key; a file of this name is `./` and the name',
        })
        .optional()
        .describe(
          'File to which each event is appended as a line of JSON, relative to this file. It is created with mode 0600, and opened anew for each event, so that it can be rotated.',
        ),
      retention: durationSchema
        .refine((age) => age > 0, { error: 'expected a duration of more than 0' })
        .prefault(durationText(365 * DAY))
        .describe('Age at which events are deleted from `config.database`.'),
    },
  ),
);

export type AuditSettings = z.output<typeof auditSettingsSchema>;

/** Without the section. */
export const USUAL_AUDIT: AuditSettings = { retention: 365 * DAY };
