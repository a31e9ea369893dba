// apache-md5 has no types.
declare module 'apache-md5' {
  /** The hash of a password (one byte per character) with the salt and the format of another hash. */
  function md5(password: string, hash: string): string;
  // biome-ignore lint/style/noDefaultExport: it is what the package exports.
  export default md5;
}
