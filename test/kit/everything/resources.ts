import { ResourceTemplate } from '@modelcontextprotocol/server';
import { pngPixel } from './media.ts';
import type { Fixture } from './server.ts';
import { textResult } from './tools-content.ts';

const watchedUri = 'test://watched-resource';

const textMime = { mimeType: 'text/plain' };

function addFixedResources({ server }: Fixture): void {
  server.registerResource(
    'static-text',
    'test://static-text',
    { ...textMime, description: 'Text that never changes' },
    (uri) => ({ contents: [{ uri: uri.href, ...textMime, text: 'text of a resource' }] }),
  );
  server.registerResource(
    'static-binary',
    'test://static-binary',
    { mimeType: 'image/png', description: 'A PNG that never changes' },
    (uri) => ({ contents: [{ uri: uri.href, mimeType: 'image/png', blob: pngPixel }] }),
  );
  server.registerResource(
    'watched',
    watchedUri,
    { ...textMime, description: 'A resource that can be subscribed to' },
    (uri) => ({ contents: [{ uri: uri.href, ...textMime, text: 'text of a watched resource' }] }),
  );
}

function addTemplate({ server }: Fixture): void {
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', {
      list: undefined,
      complete: { id: (typed) => ['100', '120', '123'].filter((id) => id.startsWith(typed)) },
    }),
    { mimeType: 'application/json', description: 'Repeats the id of its URI' },
    (uri, { id }) => ({
      contents: [
        { uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ id, from: 'template' }) },
      ],
    }),
  );
}

/** Resources, one template, the subscription methods that the SDK leaves to the server, and a way to trigger them. */
export function addResources(fixture: Fixture): void {
  addFixedResources(fixture);
  addTemplate(fixture);
  const { server, announce } = fixture;
  const subscribed = new Set<string>();
  server.server.setRequestHandler('resources/subscribe', ({ params }) => {
    subscribed.add(params.uri);
    return {};
  });
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    subscribed.delete(params.uri);
    return {};
  });
  server.registerTool(
    'test_trigger_resource_update',
    { description: `Announces a new ${watchedUri}` },
    (ctx) => {
      // Since 2026-07-28 a listener says itself what it wants to hear, and whoever holds its stream filters.
      const filteredElsewhere = ctx.mcpReq.envelope !== undefined;
      if (filteredElsewhere || subscribed.has(watchedUri)) announce.resourceUpdated(watchedUri);
      return textResult('announced');
    },
  );
}
