import { useState } from 'react';
import type { Endpoint } from '../playground/endpoints.ts';
import type { Settings } from './chat.ts';
import { type Chat, useChat } from './use-chat.ts';

/** One side of a comparison: endpoint, model settings, and conversation. */
export interface Side {
  readonly endpoint: Endpoint;
  readonly settings: Settings;
  readonly chat: Chat;
  readonly chooseEndpoint: (key: string) => void;
  readonly change: (part: Partial<Settings>) => void;
}

/** @param place index of the initial model, counted from 0 over all endpoints */
export function useSide(endpoints: readonly [Endpoint, ...Endpoint[]], place: number): Side {
  const [key, setKey] = useState(() => startOf(endpoints, place).endpoint.key);
  const [settings, setSettings] = useState<Settings>(() => ({
    model: startOf(endpoints, place).model,
    system: '',
    temperature: '',
    maxTokens: '',
    isStreaming: true,
  }));
  const chat = useChat();
  const change = (part: Partial<Settings>): void => setSettings((before) => ({ ...before, ...part }));
  return {
    endpoint: endpoints.find((each) => each.key === key) ?? endpoints[0],
    settings,
    chat,
    change,
    chooseEndpoint: (next) => {
      const endpoint = endpoints.find((each) => each.key === next);
      if (endpoint === undefined) return;
      setKey(next);
      change({ model: namesOf(endpoint)[0] ?? '' });
      chat.clear();
    },
  };
}

function startOf(
  endpoints: readonly [Endpoint, ...Endpoint[]],
  place: number,
): { readonly endpoint: Endpoint; readonly model: string } {
  const all = endpoints.flatMap((endpoint) => namesOf(endpoint).map((model) => ({ endpoint, model })));
  return all[place] ?? all[0] ?? { endpoint: endpoints[0], model: '' };
}

/** Models that can be requested. `*` matches any name. */
function namesOf({ backends }: Endpoint): string[] {
  return backends.flatMap(({ models = [] }) => models.map(({ name }) => name.replace('*', 'gpt-4o-mini')));
}
