/** What `bloomery import` reads: the database of an Ironic, or its API with the credentials of the openstack CLI's variables. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { parseIni } from '../config/ini';
import { systemClock } from '../model/clock';
import { isObject } from '../model/json';
import { openApi, type ApiGet } from '../store/import/api';
import type { Secrets } from '../store/import/secrets';
import { openSource, type Source } from '../store/import/source';
import { createExchange } from '../wire/keystone/exchange';
import { createSender, type Retries } from '../wire/keystone/sender';
import { createKeystoneSession } from '../wire/keystone/session';
import { keystoneSettings, tlsSettings } from '../wire/keystone/settings';
import { authorization, endpoint } from './endpoint';

export interface SourceArguments {
  readonly ironicConfig?: string;
  /** True: the URL is in Keystone's catalog. */
  readonly api?: string | true;
  readonly secrets?: string;
}
const VARIABLE = 'IRONIC_DATABASE_URL';
export const ADDRESS_HELP = `Ironic's configuration file, for its [database]connection (default: the URL in the variable ${VARIABLE})`;

/** The URL of Ironic's database. It is not an argument of the command, because other users of the host can see arguments. */
function databaseUrlOf({ ironicConfig }: SourceArguments): string {
  const url =
    ironicConfig === undefined
      ? process.env[VARIABLE]
      : parseIni(readFileSync(ironicConfig, 'utf8')).findLast(({ section, key }) => section === 'database' && key === 'connection')?.value;
  if (url) return url;
  throw new Error(
    ironicConfig === undefined
      ? `name Ironic's database: --ironic-config FILE, or ${VARIABLE}; or its API: --api URL`
      : `${ironicConfig} has no [database]connection`,
  );
}

const RETRIES: Retries = {
  attemptTimeoutMs: 60_000,
  connect: { retries: 2 },
  status: { retries: 3 },
  statuses: [429, 502, 503, 504],
};
/** The section of the options that are made of the variables OS_…. */
const SECTION = 'environment';
/** OS_USER_DOMAIN_NAME → environment.user_domain_name. */
function environmentOptions(environment: NodeJS.ProcessEnv): Readonly<Record<string, unknown>> {
  const values = Object.entries(environment).flatMap(([name, value]) =>
    name.startsWith('OS_') ? [[`${SECTION}.${name.slice(3).toLowerCase()}`, value] as const] : [],
  );
  const all: Record<string, unknown> = Object.fromEntries(values);
  all[`${SECTION}.cafile`] = environment['OS_CACERT'];
  all[`${SECTION}.insecure`] = environment['OS_INSECURE'] === 'true' || environment['OS_INSECURE'] === '1';
  const isApplication = ['ID', 'NAME'].some((name) => environment[`OS_APPLICATION_CREDENTIAL_${name}`]);
  all[`${SECTION}.auth_type`] = environment['OS_AUTH_TYPE'] || (isApplication ? 'v3applicationcredential' : 'password');
  return all;
}
/** An error that names the operator's variables: OS_AUTH_URL instead of `[environment]auth_url`. */
const asVariables = (error: unknown): Error => {
  const text = (error as Error).message.split('\n')[0]!;
  return new Error(
    `Ironic's API cannot be read: ${text.replace(/\[environment\](\w+)/g, (_, name: string) => `OS_${name.toUpperCase()}`)}`,
    {
      cause: error,
    },
  );
};

async function openApiSource(url: string | true): Promise<Source> {
  const options = environmentOptions(process.env);
  const parts = { clock: systemClock, retries: RETRIES, signal: new AbortController().signal };
  const direct = url === true ? undefined : endpoint(url, {});
  if (direct !== undefined && !URL.canParse(direct)) throw new Error(`${direct} is not a URL`);
  const withKeystone = Boolean(process.env['OS_AUTH_URL']) && !process.env['OS_TOKEN'];
  let get: ApiGet;
  let close: () => Promise<void>;
  if (withKeystone) {
    const session = createKeystoneSession(keystoneSettings(options, SECTION), parts);
    const region = process.env['OS_REGION_NAME'];
    const selector = {
      serviceType: 'baremetal',
      interfaces: process.env['OS_INTERFACE'] ? [process.env['OS_INTERFACE']] : ['public', 'internal', 'admin'],
      region: region || undefined,
    };
    const service = { ...selector, endpointOverride: direct ?? endpoint(await session.endpoint(selector), {}) };
    get = (path, headers, stop) => session.request(service, path, { method: 'GET', headers }, stop);
    close = () => session.close();
  } else {
    if (direct === undefined) throw new Error('name the URL of the API: --api URL; or set OS_AUTH_URL, whose catalog has it');
    const exchange = createExchange(tlsSettings(options, SECTION));
    const send = createSender(exchange, RETRIES, parts);
    const credentials = authorization(process.env);
    get = (path, headers, stop) => send(`${direct}${path}`, { method: 'GET', headers: { ...headers, ...credentials } }, { signal: stop });
    close = () => exchange.close();
  }
  try {
    return { ...(await openApi(get)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @throws Error of one line, without a password */
export async function openArguments(given: SourceArguments): Promise<Source> {
  if (given.api !== undefined)
    return openApiSource(given.api).catch((error: unknown) => {
      throw asVariables(error);
    });
  const source = await openSource(databaseUrlOf(given));
  if (source.tables.has('nodes') && source.tables.has('node_traits')) return source;
  await source.close();
  throw new Error('this is not the database of an Ironic: it has no table nodes');
}

/** Reads YAML or JSON. Error messages do not quote the file, because it contains secrets. */
export function readSecrets(file: string | undefined): Secrets {
  if (file === undefined) return {};
  const text = readFileSync(file, 'utf8');
  const invalid = new Error(`${file}: it must be YAML or JSON such as {"node-1": {"driver_info": {"ipmi_password": "…"}}}`);
  let value: unknown;
  try {
    value = parse(text, { logLevel: 'silent' });
  } catch {
    throw invalid;
  }
  if (!isObject(value) || !Object.values(value).every((fields) => isObject(fields))) throw invalid;
  return value as Secrets;
}
