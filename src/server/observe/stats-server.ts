import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Metrics } from './metrics/metrics.ts';

const OPEN_METRICS = 'application/openmetrics-text';

/** Handles `/metrics` and `/stats/prometheus`, any method, with the metrics as OpenMetrics text. Other paths: 404. */
export function statsHandler(metrics: Metrics): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const path = request.url?.split('?')[0];
    if (path !== '/metrics' && path !== '/stats/prometheus') {
      response.writeHead(404).end();
      return;
    }
    void metrics.render().then((text) => {
      response.writeHead(200, { 'content-type': contentType(request.headers.accept) }).end(text);
    });
  };
}

/** Content type of the metrics text: OpenMetrics if the `accept` header names it, otherwise plain text. */
export function contentType(accept: string | undefined): string {
  return accept?.includes(OPEN_METRICS)
    ? `${OPEN_METRICS}; version=1.0.0; charset=utf-8`
    : 'text/plain; charset=utf-8';
}
