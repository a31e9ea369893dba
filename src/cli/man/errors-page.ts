import { DIAGNOSTIC_CODES } from '../../core/diagnostic.ts';
import { ERRORS } from '../../core/errors.ts';
import { EXIT_CODES } from '../../core/exit-codes.ts';
import { entry, heading, page, paragraph, seeAlso, title } from './roff.ts';

/** agctl-errors(7): all error codes, from the tables that the program itself uses. */
export function errorsPage(): string {
  return page(
    title('agctl-errors', 7, 'exit codes, diagnostic codes and request errors of agctl'),
    heading('Exit codes'),
    paragraph('Every command ends with one of these.'),
    Object.values(EXIT_CODES).flatMap(({ code, doc }) => entry(String(code), doc)),
    heading('Diagnostic codes'),
    paragraph('Problems of a configuration, as `agctl config validate` and `agctl serve` report them.'),
    Object.entries(DIAGNOSTIC_CODES).flatMap(([code, doc]) => entry(code, doc)),
    heading('Request errors'),
    paragraph(
      'What a client gets when its request does not reach a backend: the status, the `reason` of the access-log line, and the usual text of the response.',
    ),
    Object.entries(ERRORS).flatMap(([code, { status, reason, text }]) =>
      entry(code, `Status ${status}, reason \`${reason}\``, text),
    ),
    seeAlso([
      { name: 'agctl', section: 1 },
      { name: 'agctl-config', section: 5 },
    ]),
  );
}
