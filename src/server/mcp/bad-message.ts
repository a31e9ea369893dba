import { AppError } from '../../core/errors.ts';
import { errorMessage, type RpcError } from './protocol.ts';

/** Creates an error with status 400 and a JSON-RPC error as its body, like the official SDKs. `id` is JSON text. */
export function badMessage(error: RpcError, id: string): AppError {
  return new AppError('mcp_invalid', {
    message: `mcp: ${error.message}`,
    body: { type: 'application/json', text: errorMessage(id, error.code, error.message, error.data) },
  });
}
