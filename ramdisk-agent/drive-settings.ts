/** What programs on a deployed host are told by its config drive, in the vendor data (conductor/core/recorders.ts). */
import { readFileSync } from 'node:fs';
import { reasonOf } from '../model/errors';
import { isObject } from '../model/json';
import { readConfigDrive } from './config-drive';

/** The service, the host's node and its credentials. */
export interface Identity {
  readonly url: string;
  readonly node: string;
  readonly token: string;
}
export const [LEAST_INTERVAL, MAX_INTERVAL] = [1, 86_400];
/** Reads a file that an option names. Throws an Error with the option. */
export function readGiven(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`--${name}: ${reasonOf(error)}`, { cause: error });
  }
}

interface DriveSettings extends Partial<Identity> {
  readonly interval?: number | undefined;
  /** Why the drive could not be read. */
  readonly problem?: string;
}
const isPace = (value: unknown): value is number => typeof value === 'number' && value >= LEAST_INTERVAL && value <= MAX_INTERVAL;
/** The settings on the config drive, under a key. Without a drive, or settings on it, only `problem` may be set. */
export function settingsOnDrive(path: string, key: string): DriveSettings {
  try {
    const data = JSON.parse(readConfigDrive(path, 'openstack/latest/vendor_data2.json') ?? '{}') as unknown;
    const settings = isObject(data) ? data[key] : undefined;
    if (!isObject(settings)) return {};
    const texts = (['url', 'node', 'token'] as const)
      .filter((name) => typeof settings[name] === 'string')
      .map((name) => [name, settings[name]]);
    const interval = settings['interval'];
    return { ...(Object.fromEntries(texts) as Partial<Identity>), interval: isPace(interval) ? interval : undefined };
  } catch (error) {
    return { problem: reasonOf(error) };
  }
}

/** Throws an Error unless the option is a URL, or is not given. */
export function checkUrl(name: string, url: string | undefined): void {
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url)) throw new Error(`--${name} is http://… or https://…, not "${url}"`);
}

/** The options of a program that reads the config drive. */
interface Given {
  readonly url?: string | undefined;
  /** `auto`: what the config drive says. */
  readonly node: string;
  readonly 'token-file'?: string | undefined;
  readonly 'config-drive': string;
}
/** What the options say, and for what they leave out the config drive. Throws an Error with the option that is missing or wrong. */
export function identityFrom({ url: givenUrl, node: givenNode, 'token-file': file, 'config-drive': drive }: Given, key: string): Identity {
  const settings = settingsOnDrive(drive, key);
  const url = givenUrl ?? settings.url;
  const node = givenNode === 'auto' ? settings.node : givenNode;
  const token = file === undefined ? settings.token : readGiven('token-file', file).trim();
  checkUrl('url', givenUrl);
  if (token === '') throw new Error(`--token-file: ${file} is empty`);
  const missing = Object.entries({ '--url': url, '--node': node, '--token-file': token }).find(([, value]) => !value)?.[0];
  if (url === undefined || node === undefined || token === undefined || missing !== undefined)
    throw new Error(
      `${missing} is not given, and the config drive (${drive}) does not say it${settings.problem ? `: ${settings.problem}` : ''}`,
    );
  return { url, node, token };
}
