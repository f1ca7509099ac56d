import { NEWEST_MINOR } from '../../model/fields';

/** The newest microversion, 1.N, of openapi.yaml. */
export const NEWEST: number = NEWEST_MINOR;
/** As in headers. */
export const NEWEST_VERSION = `1.${NEWEST}`;
