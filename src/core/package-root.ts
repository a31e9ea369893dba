/** The folder of package.json: of the package or the checkout. The bundle's files are as deep below it as this one. */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);
