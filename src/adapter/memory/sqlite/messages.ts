import { AppError, type ErrorCode } from '../../../core/errors.ts';
import type { LogFields } from '../../../core/log.ts';
import type { Operation } from '../sql/operations.ts';

// Messages between the store and its thread.

export interface Call {
  readonly id: number;
  readonly namespace: string;
  readonly name: Operation | NamespaceTask | 'close';
  readonly args: readonly unknown[];
}

/** Tasks on the files themselves: delete the namespace's, copy it to the file in `args`, list all namespaces. */
export type NamespaceTask = 'remove' | 'backup' | 'list';

export interface OperationCall extends Call {
  readonly name: Operation;
}

export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly detail: string | undefined;
}

export type Result =
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly failure: Failure };

export type Answer =
  | Result
  | { readonly kind: 'opened' }
  | { readonly kind: 'refused'; readonly failure: Failure }
  | {
      readonly kind: 'log';
      readonly level: LogLevel;
      readonly message: string;
      readonly fields: LogFields;
    };

export type LogLevel = 'info' | 'warn' | 'error';
export type LogLine = (level: LogLevel, message: string, fields: LogFields) => void;

export function failureOf(error: AppError): Failure {
  return { code: error.code, message: error.message, detail: error.detail };
}

export function errorOf({ code, message, detail }: Failure): AppError {
  return new AppError(code, detail === undefined ? { message } : { message, detail });
}
