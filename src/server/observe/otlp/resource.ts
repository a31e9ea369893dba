import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { VERSION } from '../../../core/version.ts';
import type { ResourceSettings } from './settings.ts';

/** In increasing precedence: SDK defaults, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME, the configuration. */
export function resourceOf({ serviceName, instance, resources }: ResourceSettings): Resource {
  return defaultResource()
    .merge(
      resourceFromAttributes({
        'service.name': 'agctl',
        'service.version': VERSION,
        'service.instance.id': instance,
      }),
    )
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector] }))
    .merge(
      resourceFromAttributes({
        ...(serviceName === undefined ? {} : { 'service.name': serviceName }),
        ...resources,
      }),
    );
}
