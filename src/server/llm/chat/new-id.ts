import { randomUUID } from 'node:crypto';

/** An id for an answer or a call that has none: clients expect one. */
export const newId = (): string => `msg_${randomUUID().replaceAll('-', '')}`;
