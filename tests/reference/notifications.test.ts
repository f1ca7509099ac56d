/** Our notifications beside the real Ironic's: the same operations on both sides, and a comparison of the messages in both logs. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadOptions } from '../../config/load';
import { startServer } from '../../server/server';
import { silentLog, type Log } from '../../model/log';
import { startRealIronic, type RealIronic } from '../lab/inspection/real-ironic';
import { freePort } from '../support/free-port';
import { ask, settle, settleAllocations } from './compare';
import { REQUESTS } from './requests/requests-notifications';
import type { Server } from '../support/whole-server';

interface Message {
  readonly publisher_id: string;
  readonly event_type: string;
  readonly priority: string;
  readonly payload: {
    readonly 'ironic_object.name': string;
    readonly 'ironic_object.version': string;
    readonly 'ironic_object.namespace': string;
    readonly 'ironic_object.data': Readonly<Record<string, unknown>>;
  };
  readonly timestamp: string;
}
/** Delays of the fake interfaces. Without them, the real server sends the end of a flow before its beginning, or not at all. */
const SLOW = { power_delay: '1', inspect_delay: '1', deploy_delay: '1', rescue_delay: '1' };
const enabled = {
  hardware_types: 'fake-hardware',
  bios_interfaces: 'fake',
  boot_interfaces: 'fake',
  console_interfaces: 'fake',
  deploy_interfaces: 'fake',
  firmware_interfaces: 'fake',
  inspect_interfaces: 'fake',
  management_interfaces: 'fake',
  network_interfaces: 'noop',
  power_interfaces: 'fake',
  raid_interfaces: 'fake',
  rescue_interfaces: 'fake',
  storage_interfaces: 'noop',
  vendor_interfaces: 'fake',
};
const settings = {
  DEFAULT: {
    notification_level: 'debug',
    host: 'told-host',
    ...Object.fromEntries(Object.entries(enabled).map(([kind, names]) => [`enabled_${kind}`, names])),
  },
  oslo_messaging_notifications: { driver: 'log' },
  fake: SLOW,
  conductor: { automated_clean: 'true' },
};

/** Two lines of the real server may run into each other: the message ends where its JSON does. */
function messageIn(text: string): Message | undefined {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (quoted && letter === '\\') at++;
    else if (letter === '"') quoted = !quoted;
    else if (!quoted && letter === '{') depth++;
    else if (!quoted && letter === '}' && --depth === 0) return JSON.parse(text.slice(0, at + 1)) as Message;
  }
  return undefined;
}
const messagesIn = (log: string): Message[] =>
  log.split('oslo.messaging.notification.').flatMap((piece) => messageIn(piece.slice(piece.indexOf('{'))) ?? []);

/** Notifications that the real server cannot send: it reads members that a new record does not have yet, and logs a warning instead. */
const NOT_THERE = /^baremetal\.(?:port\.create\.(?:start|error)|(?:runbook|inspectionrule)\.create\.start)$/;
/** event type, field: what differs, and why. */
const INTENDED: readonly (readonly [RegExp, string, string])[] = [
  [/allocation/, 'node_uuid', 'always there when the allocation has a node; the real Ironic has it only at the end'],
  [/portgroup\.create\.start/, 'mode', 'has its default already'],
];
/** Fields that each server generates, or stores in its own form; an empty list counts as none. */
const OWN = /^(?:created_at|updated_at|provision_updated_at|inspection_\w+_at|driver_internal_info)$/;
/** Steps without the numbers of rows, and without the record that they belong to. */
const bare = (step: unknown): unknown => {
  if (typeof step !== 'object' || step === null) return step;
  const known = step as Readonly<Record<string, unknown>>;
  return 'interface' in known
    ? Object.fromEntries(Object.entries(known).filter(([name]) => /^(?:interface|step|args|priority|order)$/.test(name)))
    : step;
};
function alike({ publisher_id, event_type, priority, payload }: Message): object {
  const { 'ironic_object.data': data, ...kind } = payload;
  const shown = Object.entries(data)
    .filter(([name]) => !INTENDED.some(([type, field]) => field === name && type.test(event_type)))
    .map(
      ([name, value]) =>
        [
          name,
          OWN.test(name) ? (value === null ? null : 'a value') : Array.isArray(value) ? (value.length > 0 ? value.map(bare) : null) : value,
        ] as const,
    )
    .sort(([item], [other]) => (item < other ? -1 : 1));
  return { publisher_id, event_type, priority, ...kind, data: Object.fromEntries(shown) };
}

let reference: RealIronic;
let ours: Server;
let folder: string;
const lines: string[] = [];
/** Writes lines in the real server's form: the logger's name before the message. */
const note = (message: string, fields: object = {}): void => void lines.push(`${(fields as { logger?: string }).logger ?? ''} ${message}`);
const log: Log = { ...silentLog, info: note, error: note, child: () => log };
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-notifications-'));
  reference = await startRealIronic(join(folder, 'ironic'), '127.0.0.1', await freePort(), settings);
  const { options } = loadOptions([], {
    ...Object.fromEntries(
      Object.entries(settings).flatMap(([section, values]) =>
        Object.entries(values).map(([name, value]) => [`OS_${section.toUpperCase()}__${name.toUpperCase()}`, value]),
      ),
    ),
    OS_API__HOST_IP: '127.0.0.1',
    OS_API__PORT: '0',
    OS_DEFAULT__MY_IP: '127.0.0.1',
  });
  ours = await startServer({ options, roles: ['api', 'conductor'], stateDir: join(folder, 'ours'), log });
}, 300_000);
afterAll(async () => {
  await ours?.stop();
  await reference?.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

async function perform(url: string): Promise<number[]> {
  const statuses: number[] = [];
  for (const step of REQUESTS)
    if ('settle' in step) await settle(url, step.settle);
    else if ('settleAllocations' in step) await settleAllocations(url);
    else statuses.push((await ask(url, step)).status);
  return statuses;
}

it('our server sends the same notifications as the real Ironic for the same operations', async () => {
  const there = await perform(reference.url);
  const here = await perform(ours.apiUrl!);
  expect(here).toEqual(there);
  const told = messagesIn(readFileSync(reference.log, 'utf8'));
  const all = messagesIn(lines.join('\n'));
  const own = all.filter(({ event_type: type }) => !NOT_THERE.test(type));
  const kinds = (messages: readonly Message[]): string[] => messages.map(({ event_type: type }) => type);
  expect(kinds(own)).toEqual(kinds(told));
  expect(all.length).toBe(own.length + 6);
  expect(own.map(alike)).toEqual(told.map(alike));
  expect(lines.join()).not.toContain('hush');
}, 300_000);
