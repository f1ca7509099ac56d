/** Converts entries of a Redfish service's logs, and the events that it sends, to observations for the rules of health. */
import { isObject } from '../../model/json';
import { subjectText, type Signal, type SignalKind } from '../../model/rules/health-rules';
import { statesOfHealth } from './health-signals';

const MAX_PATH = 512;

/** What the names in a path say of the kind of a part; the last name that is here counts. */
const KINDS: Readonly<Record<string, SignalKind>> = {
  fans: 'fan',
  temperatures: 'temperature',
  thermal: 'temperature',
  powersupplies: 'power',
  power: 'power',
  drives: 'drive',
  memory: 'memory',
  memorysummary: 'memory',
  processors: 'processor',
  voltages: 'voltage',
  batteries: 'battery',
};
/** The first words of SensorType, as in IPMI 2.0 table 42-3 (DSP2046, LogEntry). */
const TYPES: readonly (readonly [RegExp, SignalKind])[] = [
  [/^(?:fan|cooling)/i, 'fan'],
  [/^temp/i, 'temperature'],
  [/^power/i, 'power'],
  [/^drive/i, 'drive'],
  [/^memory/i, 'memory'],
  [/^processor/i, 'processor'],
  [/^voltage/i, 'voltage'],
  [/^current/i, 'current'],
  [/^battery/i, 'battery'],
];
/** A path of this service, and nothing else: records may name anything. */
const PATH = /^\/redfish\/v1\/[\w./#%:~@-]{1,500}$/;
export const isOriginPath = (path: string): boolean => path.length <= MAX_PATH && PATH.test(path) && !path.includes('..');
export const kindOfPath = (path: string): SignalKind => {
  const name = path
    .toLowerCase()
    .split(/[/#]/)
    .reverse()
    .find((candidate) => Object.hasOwn(KINDS, candidate));
  return name === undefined ? 'other' : KINDS[name]!;
};
/** `Memory/DIMM1`: the collection and the name. */
export const subjectOfPath = (path: string): string =>
  subjectText(
    path
      .split(/[/#]/)
      .filter((part) => part !== '')
      .slice(-2)
      .join('/'),
  );

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.trim().slice(0, MAX_PATH) : undefined;
/** `{ "@odata.id": … }` in events and entries; a plain path in test events and old services. */
function originOf(record: Readonly<Record<string, unknown>>): string | undefined {
  const links = record['Links'];
  const given = record['OriginOfCondition'] ?? (isObject(links) ? links['OriginOfCondition'] : undefined);
  const path = text(isObject(given) ? given['@odata.id'] : given);
  return path !== undefined && isOriginPath(path) ? path : undefined;
}
/** `ResourceEvent.1.3.ResourceErrorsDetected`: without the version, which changes with the firmware. */
const messageOf = (id: string | undefined): string | undefined => id?.replace(/\.\d+(?:\.\d+){0,2}(?=\.)/, '');
/** Control characters do not belong into texts of alerts. */
const plain = (words: string): string => subjectText(words.replace(/\p{Cc}/gu, ' '));

/** Undefined: the record has no severity, so that it says nothing of health. */
export function recordSignal(source: 'log' | 'event', record: unknown): Signal | undefined {
  if (!isObject(record)) return undefined;
  const severity = text(record['MessageSeverity']) ?? text(record['Severity']);
  if (severity === undefined || !['OK', 'Warning', 'Critical'].includes(severity)) return undefined;
  const origin = originOf(record);
  const type = text(record['SensorType']);
  const number = record['SensorNumber'];
  const [, kind = 'other'] = TYPES.find(([pattern]) => type !== undefined && pattern.test(type)) ?? [];
  const isOver = record['Resolved'] === true || /deassert/i.test(text(record['EntryCode']) ?? '');
  const sensor = type === undefined ? undefined : `${type} ${typeof number === 'number' ? number : ''}`.trim();
  const subject =
    origin === undefined ? (sensor ?? messageOf(text(record['MessageId'])) ?? text(record['Message'])) : subjectOfPath(origin);
  if (subject === undefined) return undefined;
  return {
    source,
    kind: origin === undefined ? kind : kindOfPath(origin),
    subject: plain(subject),
    states: isOver ? [] : statesOfHealth(severity),
  };
}
