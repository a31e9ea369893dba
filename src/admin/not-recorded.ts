/** Header of answers whose event could not be written to the file or the database of the audit: where, separated by commas. */
export const NOT_RECORDED = 'x-agctl-audit-failed';
