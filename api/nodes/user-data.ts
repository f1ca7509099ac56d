/** Finds user data that the program which reads it at the first boot would refuse: a machine without a log-in would be the result. */
import { parseDocument } from 'yaml';
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';

/** Characters of a text that is parsed here. Longer ones are left to the machine. */
const MOST = { ignition: 2 ** 20, cloudConfig: 2 ** 14 } as const;
/** Of the specifications of Ignition. The newest systems read 3.x; Flatcar also translates 2.x. */
const IGNITION_VERSION = /^(?:2\.[0-4]\.0|3\.\d{1,3}\.0(?:-experimental)?)$/;

function ignitionProblem(config: Readonly<Record<string, unknown>>): string | undefined {
  const { ignition } = config;
  const version = isObject(ignition) ? ignition['version'] : undefined;
  if (typeof version === 'string' && IGNITION_VERSION.test(version)) return undefined;
  const found = version === undefined ? 'no version' : `the version ${JSON.stringify(version).slice(0, 64)}`;
  return `user_data is an Ignition config with ${found}: ignition.version must be 2.0.0 to 2.4.0, or 3.0.0 and later 3.x.0`;
}

function ignitionTextProblem(text: string): string | undefined {
  if (text.length > MOST.ignition) return undefined;
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (error) {
    // The parser quotes the text, which has secrets.
    const place = /position \d+/.exec(reasonOf(error))?.[0];
    return `user_data is an Ignition config that is not valid JSON${place === undefined ? '' : ` (${place})`}`;
  }
  return isObject(config) && 'ignition' in config ? ignitionProblem(config) : undefined;
}

/** What this parser says of a list, a map or a quoted text over several lines without an indent, which cloud-init's parser takes. */
const NOT_CLOSED = /(?:end with a |Missing closing )([\]}"'])/;

/** As cloud-init reads it: YAML 1.1, with equal keys, and unknown tags. */
function cloudConfigProblem(text: string): string | undefined {
  if (text.length > MOST.cloudConfig) return undefined;
  try {
    const [error] = parseDocument(text, {
      version: '1.1',
      uniqueKeys: false,
      logLevel: 'silent',
      prettyErrors: false,
      strict: false,
    }).errors;
    // Nested more deeply than this parser can read.
    if (!error || error.code === 'RESOURCE_EXHAUSTION') return undefined;
    const [at] = error.pos;
    const closing = NOT_CLOSED.exec(error.message)?.[1];
    if (closing !== undefined && text.includes(closing, at)) return undefined;
    const line = text.slice(0, at).split('\n').length;
    return `user_data is a #cloud-config that is not valid YAML (line ${line}: ${error.code})`;
  } catch {
    return undefined;
  }
}

/** Why user data of a config drive cannot be used, by its first characters; undefined: nothing is known against it. */
export function userDataProblem(data: unknown): string | undefined {
  if (isObject(data)) return 'ignition' in data ? ignitionProblem(data) : undefined;
  if (typeof data !== 'string') return undefined;
  if (/^\s{0,64}\{/.test(data) && data.slice(0, 4096).includes('"ignition"')) return ignitionTextProblem(data);
  return /^#cloud-config\s/.test(data) ? cloudConfigProblem(data) : undefined;
}
