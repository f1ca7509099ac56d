/**
 * `/healthcheck` for load balancers and supervisors, without authentication. The responses are those of oslo.middleware.
 */
import { existsSync } from 'node:fs';
import { hostname, release, type } from 'node:os';
import type { IncomingHttpHeaders } from 'node:http';
import type { Options } from '../../config/options';
import { networksOf, parseNetwork } from '../../model/idents';
import { preferred } from './accept';

type HealthcheckOptions = Pick<Options, Extract<keyof Options, `healthcheck.${string}`>>;
interface HealthAnswer {
  readonly status: number;
  readonly type?: string;
  readonly text: string;
}
/** Undefined: the health check does not handle the request. */
export type Healthcheck = (request: HealthRequest) => Promise<HealthAnswer | undefined>;
interface HealthRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** The client's address, and the server's port. */
  readonly from: string | undefined;
  readonly port: number | undefined;
}

export const isHealthcheck = (path: string): boolean => path === '/healthcheck' || path.startsWith('/healthcheck/');

interface CheckResult {
  readonly available: boolean;
  readonly reason: string;
  readonly details?: string;
}
const OK: CheckResult = { available: true, reason: 'OK' };
const DISABLED: CheckResult = { available: false, reason: 'DISABLED BY FILE' };
/** The data of the backends that oslo.middleware does not have. */
interface HealthChecks {
  readonly isDatabaseUp: () => Promise<boolean>;
  /** Milliseconds above which the delay of the event loop stayed during the last half minute. */
  readonly lastingDelay: () => number;
  /** Why Keystone refuses this server; undefined: it does not. */
  readonly loginRefusal: () => string | undefined;
}
interface CheckInput {
  readonly options: HealthcheckOptions;
  /** The local port of the connection. */
  readonly port: number | undefined;
  readonly checks: HealthChecks;
}
/** [healthcheck]backends. `database`, `keystone` and `event_loop` are extensions. */
const BACKENDS: Readonly<Record<string, (input: CheckInput) => CheckResult | Promise<CheckResult>>> = {
  disable_by_file: ({ options }) => {
    const path = options['healthcheck.disable_by_file_path'];
    if (!path) return { ...OK, details: "No 'disable_by_file_path' configuration value specified" };
    return existsSync(path) ? { ...DISABLED, details: `Path '${path}' was found` } : { ...OK, details: `Path '${path}' was not found` };
  },
  disable_by_files_ports: ({ options, port }) => {
    const path = options['healthcheck.disable_by_file_paths'].find((pair) => pair.startsWith(`${port}:`))?.replace(/^\d+:/, '');
    return path && existsSync(path) ? DISABLED : OK;
  },
  enable_by_files: ({ options }) => {
    const missing = options['healthcheck.enable_by_file_paths'].find((path) => !existsSync(path));
    return missing === undefined
      ? { ...OK, details: 'Specified file paths are available' }
      : { available: false, reason: 'FILE PATH MISSING', details: `File path ${missing} is missing` };
  },
  database: async ({ checks }) =>
    (await checks.isDatabaseUp()) ? OK : { available: false, reason: 'DATABASE UNREACHABLE', details: 'The database does not answer' },
  keystone: ({ checks }) => {
    const refusal = checks.loginRefusal();
    return refusal === undefined ? OK : { available: false, reason: 'KEYSTONE REFUSES THIS SERVER', details: refusal };
  },
  event_loop: ({ options, checks }) => {
    const delay = checks.lastingDelay();
    const details = `The delay of the event loop stays above ${delay} ms`;
    return delay > options['healthcheck.max_event_loop_delay'] ? { available: false, reason: 'EVENT LOOP DELAYED', details } : OK;
  },
};

/** The proxy headers that oslo.middleware checks. */
const PROXIED = ['x-forwarded', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-for', 'x-forwarded-prefix'];

const escaped = (text: string): string =>
  text.replace(/[&<>'"]/g, (character) => `&${{ '&': 'amp', '<': 'lt', '>': 'gt', "'": '#39', '"': '#34' }[character]!};`);
interface ReportOptions {
  readonly detailed: boolean;
  readonly now: string;
}
const platform = (): string => `${type()}-${release()}-${process.arch}`;
const cell = (text: string): string => `<TD>${escaped(text)}</TD>`;

/** The page of oslo.middleware, without its list of threads. */
function html(results: readonly CheckResult[], { detailed, now }: ReportOptions): string {
  const facts = { 'Server hostname': hostname(), 'Current time': now, 'Node version': process.version, Platform: platform() };
  const head = Object.entries(facts).map(([name, fact]) => `<B>${name}:</B><PRE>${escaped(fact)}</PRE>\n`);
  const columns = (detailed ? ['Kind', 'Reason', 'Details'] : ['Reason']).map((name) => `<TH>\n${name}\n</TH>\n`).join('');
  const rows = results.map(({ reason, details = '' }) =>
    detailed ? `<TR>\n${cell('HealthcheckResult')}\n    ${cell(reason)}\n${cell(details)}\n</TR>` : `<TR>\n\n    ${cell(reason)}\n\n</TR>`,
  );
  return (
    `<HTML>\n<HEAD><TITLE>Healthcheck Status</TITLE></HEAD>\n<BODY>\n` +
    (detailed ? `<H1>Server status</H1>\n${head.join('')}<HR></HR>\n` : '\n') +
    `<H2>Result of ${results.length} checks:</H2>\n<TABLE bgcolor="#ffffff" border="1">\n<TBODY>\n<TR>\n` +
    (detailed ? `${columns}\n</TR>\n` : `\n${columns}</TR>\n`) +
    `${rows.join('')}\n</TBODY>\n</TABLE>\n<HR></HR>\n\n</BODY>\n</HTML>`
  );
}
const json = (results: readonly CheckResult[], { detailed, now }: ReportOptions): string =>
  JSON.stringify(
    {
      detailed,
      ...(detailed ? { node_version: process.version, now, platform: platform() } : {}),
      reasons: results.map(({ reason, details = '' }) => (detailed ? { class: 'HealthcheckResult', details, reason } : reason)),
    },
    null,
    4,
  );
/** Content type → its writer. Among types of equal quality, the first one wins. */
const WRITERS: Readonly<Record<string, (results: readonly CheckResult[], shown: ReportOptions) => string>> = {
  'text/plain': (results) => results.map(({ reason }) => reason).join('\n'),
  'text/html': html,
  'application/json': json,
};
const TYPES = Object.keys(WRITERS);

/** Throws an Error for invalid options, with a message for the operator. */
export function createHealthcheck(options: HealthcheckOptions, checks: HealthChecks, now: () => number): Healthcheck {
  const names = options['healthcheck.backends'];
  const unknown = names.find((name) => !Object.hasOwn(BACKENDS, name));
  if (unknown !== undefined) throw new Error(`[healthcheck]backends: "${unknown}" is not one of ${Object.keys(BACKENDS).join(', ')}`);
  if (names.includes('disable_by_file') && names.includes('enable_by_files'))
    throw new Error('[healthcheck]backends: disable_by_file and enable_by_files exclude each other');
  const ranges = options['healthcheck.allowed_source_ranges'];
  const wrong = ranges.find((range) => !parseNetwork(range));
  if (wrong !== undefined) throw new Error(`[healthcheck]allowed_source_ranges: "${wrong}" is not a network`);
  const sources = ranges.length === 0 ? undefined : networksOf(ranges);
  const detailed = options['healthcheck.detailed'];

  return async ({ method, headers, from = '', port }) => {
    if (sources && !sources.contains(from)) return undefined;
    if (options['healthcheck.ignore_proxied_requests'] && PROXIED.some((name) => headers[name])) return undefined;
    const results = await Promise.all(names.map(async (name) => BACKENDS[name]!({ options, port, checks })));
    const healthy = results.every(({ available }) => available);
    if (method === 'HEAD') return healthy ? { status: 204, text: '' } : { status: 503, type: 'text/plain; charset=UTF-8', text: '' };
    const chosen = preferred(headers.accept, TYPES) ?? TYPES[0]!;
    const text = WRITERS[chosen]!(results, { detailed, now: new Date(now()).toISOString() });
    return { status: healthy ? 200 : 503, type: chosen.startsWith('text/') ? `${chosen}; charset=UTF-8` : chosen, text };
  };
}
