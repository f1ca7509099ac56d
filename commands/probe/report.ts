/** What `bloomery probe` prints. */
import { withoutEchoes, echoesOf } from '../../wire/redfish/errors';
import { shortened } from '../../model/text';
import { isObject } from '../../model/json';
import { printable } from '../../model/log';
import type { Finding, ProbeReport, Result } from './check';

/** Characters of one text. The BMC chose some of them. */
const MAX_TEXT = 600;
/** The report without the secrets of the login, which BMCs may send back, and with bounded texts. */
export function withoutSecrets<T>(value: T, secrets: readonly (string | undefined)[]): T {
  const echoes = echoesOf(secrets);
  const bounded = (item: unknown): unknown => {
    if (typeof item === 'string') return shortened(echoes ? (withoutEchoes(item, echoes.pattern, true) as string) : item, MAX_TEXT);
    if (Array.isArray(item)) return item.map(bounded);
    return isObject(item) ? Object.fromEntries(Object.entries(item).map(([name, below]) => [name, bounded(below)])) : item;
  };
  return bounded(value) as T;
}

const COUNTED: readonly Result[] = ['ok', 'missing', 'wrong', 'unknown'];
const WIDTH = 15;
const finding = ({ result, check, text, todo, needed_for: needed, optional }: Finding): readonly string[] => {
  const start = `  ${result.padEnd(8)} ${check.padEnd(WIDTH)} `;
  const why = result === 'ok' || optional ? '' : ` Needed for ${needed.join(', ')}.`;
  return [
    `${start}${printable(text)}${why}`,
    ...(todo === undefined || result === 'ok' ? [] : [`${' '.repeat(WIDTH + 12)}→ ${printable(todo)}`]),
  ];
};
export function reportText({ bmc, protocol, machine, quirks, findings }: ProbeReport): string {
  const told = Object.entries(machine).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${printable(value)}`]));
  const counts = COUNTED.map((result) => [findings.filter((item) => item.result === result).length, result] as const);
  const sent =
    protocol === 'redfish'
      ? 'The probe sent GET requests, and the POST and DELETE of its session. It changed nothing.'
      : 'The probe sent commands of IPMI that read. It changed nothing.';
  return [
    bmc,
    ...told.map((line) => `  ${line}`),
    '',
    ...findings.flatMap(finding),
    '',
    ...(quirks.length > 0 ? ['What is done differently for this machine:', ...quirks.map((text) => `  ${text}`), ''] : []),
    `${counts.map(([count, result]) => `${count} ${result}`).join(', ')}. ${sent}`,
  ].join('\n');
}
