import { z } from 'zod';
import { InvalidDirectives, parseDirectives } from '../../core/log-directives.ts';

const directives = z.string().superRefine((text, check) => {
  try {
    parseDirectives(text);
  } catch (error) {
    if (!(error instanceof InvalidDirectives)) throw error;
    check.addIssue({ code: 'custom', message: `\`${error.clause}\` is no log level: ${error.hint}` });
  }
});

/** Log levels as one text of directives. */
export const logLevelSchema = z
  .union([directives, z.array(directives).min(1)])
  .transform((value) => [value].flat().join(','))
  .describe(
    'Least severe messages to log: `error`, `warn`, `info`, `debug`, `trace` or `off`. Also levels per module, as in `info,mcp=debug,request=off`, where `request` is the access log; the environment variable RUST_LOG overrides it.',
  );
