// All tests of `npm test` that need the server, which a machine without one skips.
import '../../server/shared/rate-limits.test.ts';
import '../../server/shared/replicas.test.ts';
import '../../server/shared/sessions.test.ts';
