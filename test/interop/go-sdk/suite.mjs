// A client and servers of the official Go SDK, modelcontextprotocol/go-sdk.
import { goProgram } from '../go-program.mjs';

export const { missing, start } = goProgram(import.meta.dirname, 'GO_SDK');
