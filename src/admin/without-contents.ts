import type { ProblemsView } from '../core/overview.ts';
import { STREAM_FIELD } from '../core/requests/finished.ts';
import type { RecentRequest } from '../server/observe/recent-requests.ts';
import { FIELD_NAMES } from '../server/observe/request-fields.ts';
import type { ShownRecord } from '../server/record/search.ts';
import type { Admin } from './sources.ts';

// What the role `viewer` sees of requests and of the configuration: no contents.

/**
 * Fields that the gateway itself writes. Those of `accessLog.add` may be anything that an expression can read of a request, also under the
 * name of another field.
 */
export function fieldsWithoutContents(request: RecentRequest, { served }: Admin): RecentRequest {
  const added = Object.keys(served().config.frontendPolicies.accessLog.add);
  const isAdded = (name: string): boolean =>
    added.some((each) => name === each || name.startsWith(`${each}.`));
  const kept = Object.entries(request.fields).filter(
    ([name]) => (FIELD_NAMES.has(name) || name === STREAM_FIELD) && !isAdded(name),
  );
  return { ...request, fields: Object.fromEntries(kept) };
}

/** A record without the conversation, and without added fields. */
export function recordWithoutContents({ payload: _payload, added: _added, ...record }: ShownRecord): object {
  return record;
}

/** Problems without excerpts of the file. */
export function problemsWithoutContents({ diagnostics, ...counts }: ProblemsView): ProblemsView {
  return {
    ...counts,
    diagnostics: diagnostics.map(({ severity, code, message, range, help }) => ({
      severity,
      code,
      message,
      range,
      ...(help !== undefined && { help }),
    })),
  };
}
