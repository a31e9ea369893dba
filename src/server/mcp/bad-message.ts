import { AppError } from '../../core/errors.ts';
import { errorMessage, type RpcError } from './protocol.ts';

/** A 400 with a JSON-RPC error as its body, as the official SDKs answer. `id` is JSON text. */
export function badMessage(error: RpcError, id: string): AppError {
  return new AppError('mcp_invalid', {
    message: `mcp: ${error.message}`,
    body: { type: 'application/json', text: errorMessage(id, error.code, error.message, error.data) },
  });
}
