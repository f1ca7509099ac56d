/** The options of parts of the server that tests start without `main`. */
import { loadOptions } from '../../config/load';
import type { Options } from '../../config/options';
import { resolveOptions } from '../../server/settings';

/** Read once for a test file: some files need a thousand copies, and each reading converts hundreds of rows. */
let defaults: Options | undefined;
const readDefaults = (): Options =>
  resolveOptions({ ...loadOptions([], {}).options, 'DEFAULT.host': 'here', 'DEFAULT.my_ip': '192.0.2.1' }, '/nonexistent', {
    api: 6385,
    http: 8080,
    https: null,
  });

/** The defaults, resolved for a host `here` at a documentation address (RFC 5737), with a test's changes. */
export const optionsOf = (changes: Partial<Options> = {}): Options => ({ ...(defaults ??= readDefaults()), ...changes });
