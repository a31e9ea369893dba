// h2spec, the conformance checks for HTTP/2 servers of summerwind/h2spec.
import { goPrograms } from '../go-program.mjs';

export const { missing, start } = goPrograms(import.meta.dirname, { H2SPEC: '.' });
