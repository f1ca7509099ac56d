/** The actions on nodes, as a table. Ironic's state machine (model/states.ts) determines which provision states allow a verb. */
import type { PagePolicy } from '../../model/rules/page-policies';
import { DELETABLE_STATES, nextState, STATES, VERBS, VERBS_OUT_OF_SERVICE, type ProvisionState } from '../../model/states';
import type { Api } from './api';
import { imagePatch, typedImage, type NamedImage } from './images';
import type { NodeRow } from './rows';

interface Input {
  readonly name: string;
  readonly title: string;
  readonly kind: 'text' | 'password' | 'json' | 'image' | 'choice';
  /** The options; only of the kind `choice`. */
  readonly choices?: readonly string[];
  readonly needed?: true;
  readonly initial?: string;
}
type Values = Readonly<Record<string, string>>;
export interface Action {
  readonly id: string;
  readonly title: string;
  /** What the action does; the confirmation dialog shows it. */
  readonly effect: string;
  readonly policy: PagePolicy;
  /** Why a node is left out; undefined: the action applies to it. */
  readonly refusal: (row: NodeRow) => string | undefined;
  readonly inputs?: readonly Input[];
  readonly isDangerous?: true;
  /** The group of buttons to which the action belongs. */
  readonly group: 'provision' | 'power' | 'other';
  /** The node's state before and after the action; the confirmation dialog shows it. */
  readonly change?: (row: NodeRow) => string;
  readonly run: (api: Api, row: NodeRow, values: Values) => Promise<unknown>;
}

const provision = (api: Api, { uuid }: NodeRow, body: object): Promise<unknown> =>
  api.send('PUT', `v1/nodes/${uuid}/states/provision`, body);
const parsed = (text: string): unknown => JSON.parse(text) as unknown;
/** Verb → the state in which the node comes to rest if all goes well. Absent: it depends on the operation that continues. */
const AFTER: Readonly<Record<string, string>> = {
  manage: 'manageable',
  inspect: 'manageable',
  provide: 'available',
  active: 'active',
  rebuild: 'active',
  deleted: 'available',
  clean: 'manageable',
  service: 'active',
  rescue: 'rescue',
  unrescue: 'active',
  adopt: 'active',
  abort: 'a failed state',
};
type Verb = Pick<Action, 'title' | 'effect' | 'inputs' | 'isDangerous'> & {
  readonly body?: (values: Values) => object;
  readonly before?: Action['run'];
};

const IMAGE: readonly Input[] = [
  { name: 'image', title: 'Image', kind: 'image' },
  { name: 'image_source', title: 'or the URL of another image (empty: the image in instance_info)', kind: 'text' },
  { name: 'image_os_hash_value', title: 'SHA-256 of that image, or the URL of its checksum file', kind: 'text' },
];
/** Writes the chosen image to instance_info. `image` is the UUID of a named image, `image_source` a URL that the user typed. */
async function setImage(
  api: Api,
  { uuid }: NodeRow,
  { image: named = '', image_source: typed = '', image_os_hash_value: hash = '' }: Values,
): Promise<void> {
  if (named === '' && typed === '') return;
  const image = typed === '' ? await api.get<NamedImage>(`v1/images/${named}`) : typedImage(typed, hash);
  const { instance_info: before } = await api.get<{ readonly instance_info: Values }>(`v1/nodes/${uuid}?fields=instance_info`);
  // The user typed the URL that the node already has: its checksum stays.
  if (typed !== '' && hash === '' && typed === before['image_source']) return;
  const patch = imagePatch(before, image);
  if (patch.length > 0) await api.send('PATCH', `v1/nodes/${uuid}`, patch);
}
const AS_SET = 'as the server and the node say';
const ERASURE: readonly Input[] = [
  { name: 'erase', title: 'Erase the disks', kind: 'choice', choices: [AS_SET, 'none', 'metadata', 'express', 'full'] },
  { name: 'keep', title: 'Disks to keep, as a list of hints, such as [{"serial": "S4EWNX0R123456"}]', kind: 'text' },
];
const STEPS = '[\n  {"interface": "deploy", "step": "erase_devices_metadata"}\n]';
/** The verbs of PUT …/states/provision. */
const VERB_ACTIONS: Readonly<Record<string, Verb>> = {
  manage: { title: 'Manage', effect: 'The BMC is contacted and verified; the node becomes manageable.' },
  inspect: { title: 'Inspect', effect: 'The hardware is inspected; in-band inspection boots the machine.' },
  provide: { title: 'Provide', effect: 'The machine is cleaned if automated cleaning is on, and becomes available.' },
  active: {
    title: 'Deploy',
    effect: 'The image is written to the disk, which overwrites what is there.',
    inputs: IMAGE,
    before: setImage,
    isDangerous: true,
  },
  rebuild: { title: 'Rebuild', effect: 'The image is written to the disk again.', inputs: IMAGE, before: setImage, isDangerous: true },
  deleted: {
    title: 'Undeploy',
    effect: 'The instance is removed, and the machine is cleaned if automated cleaning is on, or if you choose how the disks are erased.',
    isDangerous: true,
    inputs: ERASURE,
    body: ({ erase = '', keep = '' }) => ({
      ...(erase === '' || erase === AS_SET ? {} : { erase }),
      ...(keep.trim() === '' ? {} : { keep: parsed(keep) }),
    }),
  },
  clean: {
    title: 'Clean',
    effect: 'These clean steps run.',
    isDangerous: true,
    inputs: [{ name: 'steps', title: 'Clean steps', kind: 'json', needed: true, initial: STEPS }],
    body: ({ steps = '' }) => ({ clean_steps: parsed(steps) }),
  },
  service: {
    title: 'Service',
    effect: 'These service steps run on the deployed machine.',
    inputs: [{ name: 'steps', title: 'Service steps', kind: 'json', needed: true, initial: '[]' }],
    body: ({ steps = '' }) => ({ service_steps: parsed(steps) }),
  },
  rescue: {
    title: 'Rescue',
    effect: 'The machine boots the rescue ramdisk.',
    inputs: [{ name: 'password', title: 'Password of the user rescue', kind: 'password', needed: true }],
    body: ({ password }) => ({ rescue_password: password }),
  },
  unrescue: { title: 'Unrescue', effect: 'The machine boots its own system again.' },
  adopt: { title: 'Adopt', effect: 'The node becomes active without a deployment.' },
  abort: {
    title: 'Abort',
    effect: 'The running operation stops, and the node goes to a failed state. A node in service failed becomes active.',
    isDangerous: true,
  },
  unhold: { title: 'Continue', effect: 'The steps after the hold run.' },
};
const verbRefusal = (target: string, { state }: NodeRow): string | undefined => {
  const allowed = Object.hasOwn(STATES, state) && nextState(state as ProvisionState, VERBS[target]!.event) !== undefined;
  return allowed ? undefined : `its state is ${state}`;
};
const POWER: readonly (readonly [target: string, title: string, effect: string])[] = [
  ['power on', 'Power on', 'The machines are switched on.'],
  ['power off', 'Power off', 'The machines are switched off at once.'],
  ['rebooting', 'Reboot', 'The machines are switched off and on.'],
  ['soft power off', 'Shut down', 'The operating systems are told to shut down.'],
];
const BOOT_DEVICES = ['disk', 'pxe', 'cdrom', 'bios', 'safe'];

export const ACTIONS: readonly Action[] = [
  ...Object.entries(VERB_ACTIONS).map(([target, { body, before, ...verb }]): Action => ({
    ...verb,
    id: target,
    group: 'provision',
    change: ({ state }) => `${state} → ${AFTER[target] ?? 'where it goes on'}`,
    policy: 'node:set_provision_state',
    refusal: (row) => {
      const allowed = row.outage === null ? ['abort'] : VERBS_OUT_OF_SERVICE;
      if (row.maintenance && !allowed.includes(target)) return row.outage === null ? 'it is in maintenance' : 'it is out of service';
      return verbRefusal(target, row);
    },
    run: async (api, row, values) => {
      await before?.(api, row, values);
      await provision(api, row, { target, ...body?.(values) });
    },
  })),
  ...POWER.map(([target, title, effect]): Action => ({
    id: target,
    title,
    effect,
    group: 'power',
    policy: 'node:set_power_state',
    change: ({ power }) =>
      `${power ?? 'unknown'} → ${target === 'soft power off' ? 'power off' : target === 'rebooting' ? 'power on' : target}`,
    refusal: ({ power }) => (power === target ? `it is in ${power} already` : undefined),
    run: (api, { uuid }) => api.send('PUT', `v1/nodes/${uuid}/states/power`, { target }),
  })),
  {
    id: 'maintenance',
    title: 'Maintenance on',
    group: 'other',
    effect: 'The server leaves these nodes alone.',
    policy: 'node:set_maintenance',
    inputs: [{ name: 'reason', title: 'Reason', kind: 'text' }],
    refusal: ({ maintenance }) => (maintenance ? 'it is in maintenance already' : undefined),
    run: (api, { uuid }, { reason = '' }) => api.send('PUT', `v1/nodes/${uuid}/maintenance`, { reason }),
  },
  {
    id: 'no maintenance',
    title: 'Maintenance off',
    group: 'other',
    effect: 'The server manages these nodes again.',
    policy: 'node:clear_maintenance',
    refusal: ({ maintenance, outage }) => (outage !== null ? 'it is out of service' : maintenance ? undefined : 'it is not in maintenance'),
    run: (api, { uuid }) => api.send('DELETE', `v1/nodes/${uuid}/maintenance`),
  },
  {
    id: 'out of service',
    title: 'Out of service',
    group: 'other',
    effect: 'The nodes are in maintenance until somebody puts them back. The server does not use their machines.',
    policy: 'node:out_of_service:set',
    inputs: [
      { name: 'reason', title: 'Reason', kind: 'text', needed: true },
      { name: 'ticket', title: 'URL of the ticket', kind: 'text' },
      { name: 'until', title: 'Until (such as 2026-12-01T08:00:00Z)', kind: 'text', needed: true },
    ],
    refusal: () => undefined,
    run: (api, { uuid }, { reason, ticket = '', until }) =>
      api.send('PUT', `v1/nodes/${uuid}/out_of_service`, { reason, ticket: ticket === '' ? null : ticket, until }),
  },
  {
    id: 'in service',
    title: 'In service again',
    group: 'other',
    effect: 'The maintenance of the nodes is what it was before.',
    policy: 'node:out_of_service:clear',
    refusal: ({ outage }) => (outage === null ? 'it is in service' : undefined),
    run: (api, { uuid }) => api.send('DELETE', `v1/nodes/${uuid}/out_of_service`),
  },
  {
    id: 'report alert',
    title: 'Add alert',
    group: 'other',
    effect: 'The alert counts until its time is over, or until somebody clears it.',
    policy: 'node:health:report',
    inputs: [
      { name: 'text', title: 'What is wrong', kind: 'text', needed: true },
      { name: 'severity', title: 'Severity', kind: 'choice', choices: ['warning', 'critical'] },
      { name: 'subject', title: 'Part', kind: 'text' },
      { name: 'until', title: 'Until (such as 2026-12-01T08:00:00Z)', kind: 'text' },
    ],
    refusal: () => undefined,
    run: (api, { uuid }, { text, severity = 'warning', subject = '', until = '' }) =>
      api.send('POST', `v1/nodes/${uuid}/health/alerts`, {
        source: 'operator',
        text,
        severity,
        subject: subject === '' ? null : subject,
        until: until === '' ? null : until,
      }),
  },
  {
    ...({
      id: 'boot device',
      title: 'Boot device',
      group: 'other',
      effect: 'The BMC is told what to boot next.',
      policy: 'node:set_boot_device',
    } as const),
    inputs: [{ name: 'device', title: 'Device', kind: 'choice', choices: BOOT_DEVICES }],
    refusal: () => undefined,
    run: (api, { uuid }, { device }) =>
      api.send('PUT', `v1/nodes/${uuid}/management/boot_device`, { boot_device: device, persistent: false }),
  },
  {
    id: 'snapshot',
    title: 'Snapshot',
    group: 'other',
    effect: 'The machine boots the ramdisk, which saves the root disk to the server, and boots its own system again.',
    policy: 'node:snapshot:create',
    inputs: [
      { name: 'description', title: 'Description', kind: 'text' },
      { name: 'blocks', title: 'Blocks of the disk: those that its file systems use, or all', kind: 'choice', choices: ['used', 'all'] },
    ],
    change: ({ state }) => `${state} → active`,
    refusal: ({ state, maintenance }) => (maintenance ? 'it is in maintenance' : state === 'active' ? undefined : `its state is ${state}`),
    run: (api, { uuid }, { description = '', blocks = 'used' }) =>
      api.send('POST', `v1/nodes/${uuid}/snapshots`, { blocks, ...(description === '' ? {} : { description }) }),
  },
  {
    id: 'delete',
    title: 'Delete',
    group: 'other',
    effect: 'The nodes, their ports and their history are removed.',
    policy: 'node:delete',
    isDangerous: true,
    // An option of the server, which the page does not know, decides about available nodes.
    refusal: ({ state, maintenance }) =>
      maintenance || state === 'available' || DELETABLE_STATES.includes(state as ProvisionState) ? undefined : `its state is ${state}`,
    run: (api, { uuid }) => api.send('DELETE', `v1/nodes/${uuid}`),
  },
];

export interface Outcome {
  readonly row: NodeRow;
  /** Undefined: the server accepted it. */
  readonly error?: string;
}
const AT_ONCE = 8;
/** Runs an action on rows, AT_ONCE at a time. @param context.report called after each row */
export async function runAction(
  action: Action,
  rows: readonly NodeRow[],
  context: { readonly api: Api; readonly values: Values; readonly report: (outcome: Outcome) => void },
): Promise<void> {
  const waiting = [...rows];
  const work = async (): Promise<void> => {
    for (let row = waiting.shift(); row; row = waiting.shift())
      try {
        await action.run(context.api, row, context.values);
        context.report({ row });
      } catch (error) {
        context.report({ row, error: error instanceof Error ? error.message : String(error) });
      }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** The action that masks one alert of a node. */
export const maskAction = (alert: string, text: string): Action => ({
  id: 'mask alert',
  title: 'Mask alert',
  group: 'other',
  effect: `Until the time, this alert does not count: ${text}`,
  policy: 'node:health:mask',
  inputs: [
    { name: 'reason', title: 'Reason', kind: 'text', needed: true },
    { name: 'until', title: 'Until (such as 2026-12-01T08:00:00Z)', kind: 'text', needed: true },
  ],
  refusal: () => undefined,
  run: (api, { uuid }, { reason, until }) => api.send('PUT', `v1/nodes/${uuid}/health/alerts/${alert}/mask`, { reason, until }),
});

/** The action clean or service with steps that a view has prepared. The dialog shows them before they run. */
export function stepsAction(verb: 'clean' | 'service', title: string, steps: readonly object[]): Action {
  const action = ACTIONS.find(({ id }) => id === verb)!;
  const inputs = action.inputs!.map((input) => ({ ...input, initial: JSON.stringify(steps, null, 2) }));
  return { ...action, title, effect: `${action.effect} The machine may restart.`, inputs };
}
