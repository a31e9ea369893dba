import { AppError } from '../../core/errors.ts';

/**
 * A request that is refused before anything else looks at it. `detail` is for the log, `message` for the client. The
 * connection ends: what follows on it may be read in two ways, too.
 */
export function validationError(
  code: ConstructorParameters<typeof AppError>[0],
  detail?: string,
  message?: string,
): AppError {
  return new AppError(code, {
    headers: ['connection', 'close'],
    ...(detail === undefined ? {} : { detail }),
    ...(message === undefined ? {} : { message }),
  });
}
