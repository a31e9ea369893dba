// A client and servers of the official Go SDK, modelcontextprotocol/go-sdk, and the server that it is itself judged by.
import { goPrograms } from '../go-program.mjs';

export const { missing, start } = goPrograms(import.meta.dirname, {
  GO_SDK: '.',
  GO_SDK_EVERYTHING: 'github.com/modelcontextprotocol/go-sdk/conformance/everything-server',
});
