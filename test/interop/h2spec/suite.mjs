// h2spec, the conformance checks for HTTP/2 servers of summerwind/h2spec.
import { goProgram } from '../go-program.mjs';

export const { missing, start } = goProgram(import.meta.dirname, 'H2SPEC');
