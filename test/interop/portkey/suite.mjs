// Portkey's gateway, beside a gateway that imported the same config object; installed here from npm.
import { npmPackages } from '../npm-packages.mjs';

export const { missing, start } = npmPackages('PORTKEY', ['@portkey-ai/gateway@1.15.2']);
