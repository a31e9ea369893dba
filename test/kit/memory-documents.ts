/** A docs folder of a small project, with links, folders and a page about each of a few subjects. */
export const DOCUMENTS: Readonly<Record<string, string>> = {
  'guide/start.md':
    '# Getting started\n\nInstall the package and run the server. See [limits](limits.md) and [tokens](../auth/tokens.md).\n\n## Ports\n\nThe server listens on port 8080, the admin server on port 15000.\n',
  'guide/limits.md':
    '# Rate limits\n\nEach client may send a hundred requests a minute. More are answered with 429.\n\n## Bursts\n\nA burst of ten requests is allowed on top of the limit.\n',
  'auth/tokens.md':
    '# Tokens\n\nA bearer token is checked for its signature, issuer and audience. Back to [start](../guide/start.md).\n\n## Rotation\n\nKeys are rotated every day; old tokens stay valid for an hour.\n',
};

/** Text that would do harm if it were taken for more than text. */
export const HOSTILE = `<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>](javascript:alert(1)) \u202Egnp.exe\u0007`;
