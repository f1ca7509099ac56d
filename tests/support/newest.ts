/** The newest microversion, 1.N. `tests/api/schema/document.test.ts` compares it with openapi.yaml. */
export const NEWEST = 115;
/** As in headers. */
export const NEWEST_VERSION = `1.${NEWEST}`;
