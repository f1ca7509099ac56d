/** What a deployment needs of a Redfish service, as a table of checks. Each reads, and changes nothing. */
import type { Log } from '../../model/log';
import { redfishInventory } from '../../drivers/redfish/inventory';
import { dellBootsVirtualCd } from '../../drivers/redfish/makers';
import { managersOf } from '../../drivers/redfish/managers';
import { redfishReader } from '../../drivers/redfish/reader';
import {
  actionOf,
  allowableValues,
  linkOf,
  linkedCollection,
  listOf,
  member,
  memberPaths,
  readLinked,
  readResource,
  rootPath,
  isStatus,
  textOf,
  textsOf,
  RedfishError,
  type RedfishResource,
} from '../../wire/redfish';
import { missing, ok, unknown, wrong, ProbeEnd, type Check, type Outcome } from './check';
import { redfishOutcome, type ProbedService } from './service';

export interface ProbedMachine extends ProbedService {
  readonly root: RedfishResource;
  /** The machine's; undefined: the service names none, or it cannot be read. */
  readonly system: RedfishResource | undefined;
  /** Paths of all systems of the service. */
  readonly systems: readonly string[];
  readonly managers: readonly RedfishResource[];
  readonly log: Log;
  readonly now: () => number;
}

/** Reads the root, the system and its managers. @param systemId path of the system; undefined: the first @throws ProbeEnd */
export async function probedMachine(
  service: ProbedService,
  systemId: string | undefined,
  { log, now }: Pick<ProbedMachine, 'log' | 'now'>,
): Promise<ProbedMachine> {
  const { ask, target } = service;
  const root = await readResource(ask, rootPath(target));
  const found = linkOf(member(root.body, 'Systems'));
  const systems = found === undefined ? [] : await memberPaths(ask, found).catch(notFatal([]));
  const path = systemId?.replace(/^(?!\/)/, '/') ?? systems[0];
  const system = path === undefined ? undefined : await readResource(ask, path).catch(notFatal(undefined));
  const managers = system ? await managersOf({ ...system, ask, target }).catch(notFatal([])) : [];
  const all = managers.length > 0 ? managers : ((await linkedCollection(ask, root, 'Managers').catch(notFatal([]))) ?? []);
  return { ...service, root, system, systems, managers: all, log, now };
}
/** The value in place of what the service does not give. Checks that need it say so. */
const notFatal =
  <T>(instead: T) =>
  (error: unknown): T => {
    if (error instanceof RedfishError) return instead;
    throw error;
  };

const redfishError = (error: unknown): RedfishError => {
  if (error instanceof RedfishError) return error;
  throw error;
};
const systemOf = ({ system }: ProbedMachine): RedfishResource => {
  if (system) return system;
  throw new RedfishError('protocol', 'There is no system to ask.');
};
const listed = (values: readonly string[] | undefined, most = 12): string =>
  values === undefined ? 'values that the service does not list' : values.slice(0, most).join(', ') + (values.length > most ? ', …' : '');
const counted = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`;

/** The property Boot where it is written: a settings resource may have it. */
async function bootOf(machine: ProbedMachine): Promise<{ readonly boot: unknown; readonly targets: readonly string[] | undefined }> {
  const system = systemOf(machine);
  const settings = await readLinked(machine.ask, system, '@Redfish.Settings', 'SettingsObject').catch(notFatal(undefined));
  const boots = [member(system.body, 'Boot'), member(settings?.body, 'Boot')];
  const targets = boots.map((boot) => allowableValues(boot, 'BootSourceOverrideTarget')).find((values) => values !== undefined);
  return { boot: boots.find((boot) => boot !== undefined), targets };
}
async function bootTarget(machine: ProbedMachine, names: readonly string[], what: string, todo: string): Promise<Outcome> {
  const { boot, targets } = await bootOf(machine);
  if (boot === undefined) return missing('The system has no property Boot.', 'Update the firmware of the BMC.');
  if (!targets) return unknown('The service does not list the boot devices that it takes.', 'Try it: a refusal names the device.');
  const found = names.find((name) => targets.includes(name));
  return found === undefined
    ? missing(`The service does not take ${names.join(' or ')} as boot device; it takes ${listed(targets)}.`, todo)
    : ok(`${what} by ${found}.`);
}

async function resetTypes(machine: ProbedMachine): Promise<Outcome> {
  const system = systemOf(machine);
  const state = textOf(member(system.body, 'PowerState'));
  const action = actionOf(system, '#ComputerSystem.Reset');
  if (!action) return missing('The system offers no reset action.', 'Check the role of the account, and update the firmware of the BMC.');
  if (state === undefined) return unknown('The service does not tell the power state at the moment.', 'Run the probe again.');
  const types = await action.allowed(machine.ask, 'ResetType');
  if (!types) return ok(`The machine is ${state}; the service does not list its reset types.`);
  // Some services list only what is possible now.
  const needed = state === 'Off' ? ['On'] : state === 'On' && !types.includes('On') ? ['ForceOff'] : ['On', 'ForceOff'];
  const absent = needed.filter((type) => !types.includes(type));
  return absent.length > 0
    ? wrong(`The machine is ${state}; the service does not offer ${absent.join(', ')}, but ${listed(types)}.`)
    : ok(`The machine is ${state}; ${listed(types)}.`);
}

/** The drives of virtual media: the system's, otherwise its managers'. */
async function mediaOf(machine: ProbedMachine): Promise<readonly RedfishResource[]> {
  const own = await linkedCollection(machine.ask, systemOf(machine), 'VirtualMedia');
  if (own && own.length > 0) return own;
  const drives: RedfishResource[] = [];
  for (const manager of machine.managers) drives.push(...((await linkedCollection(machine.ask, manager, 'VirtualMedia')) ?? []));
  return drives;
}
const isCd = ({ body }: RedfishResource): boolean => ['CD', 'DVD'].some((type) => textsOf(member(body, 'MediaTypes'))?.includes(type));
/** iDRAC 9 below 6.00 and iDRAC 7 and 8 boot the physical drive instead. */
function oldDell({ managers, system }: ProbedMachine): string | undefined {
  const version = textOf(member(managers[0]?.body, 'FirmwareVersion'));
  if (!/\bdell\b/i.test(textOf(member(system?.body, 'Manufacturer')) ?? '') || version === undefined) return undefined;
  return dellBootsVirtualCd(version) ? undefined : version;
}
async function virtualMedia(machine: ProbedMachine): Promise<Outcome> {
  const drives = await mediaOf(machine);
  const cds = drives.filter(isCd);
  const instead = 'Boot from the network instead: the boot interfaces ipxe and http-ipxe.';
  if (cds.length === 0) return missing(`There is no virtual CD drive among ${counted(drives.length, 'drive')} of virtual media.`, instead);
  const usable: RedfishResource[] = [];
  for (const drive of cds) {
    const allow = (await machine.ask('GET', drive.path)).headers['allow'] ?? '';
    const acts = actionOf(drive, '#VirtualMedia.InsertMedia') ?? actionOf(drive, '#VirtualMedia.EjectMedia');
    if (acts !== undefined || /\bPATCH\b/i.test(allow)) usable.push(drive);
  }
  if (usable.length === 0)
    return wrong(
      `${counted(cds.length, 'virtual CD drive')} of the service can insert nothing.`,
      `Look for a licence of virtual media that is missing. ${instead}`,
    );
  const version = oldDell(machine);
  if (version !== undefined)
    return wrong(
      `The BMC with the firmware ${version} boots another drive than the virtual CD.`,
      `Update the BMC to iDRAC 9 6.00 or later. ${instead}`,
    );
  const full = usable.filter(({ body }) => member(body, 'Inserted') === true).length;
  return ok(`${counted(usable.length, 'virtual CD drive')} can insert an image; ${full === 0 ? 'none has' : `${full} has`} a medium now.`);
}

async function inspection(machine: ProbedMachine): Promise<Outcome> {
  const { ask, log, now } = machine;
  const clock = { now, sleep: () => Promise.resolve() };
  const { inventory, memoryMb, localGb } = await redfishInventory(redfishReader({ clock, log }, ask), systemOf(machine).body);
  const { interfaces, cpu, disks = [] } = inventory;
  const told = [
    [memoryMb !== undefined, 'memory', `${Math.round((memoryMb ?? 0) / 1024)} GiB of memory`],
    [localGb > 0, 'disks', counted(disks.length, 'disk')],
    [cpu?.architecture !== '', 'architecture of the processors', String(cpu?.architecture)],
    [interfaces.length > 0, 'MAC addresses', counted(interfaces.length, 'network interface')],
  ] as const;
  const [has, lacking] = [
    told.filter(([isTold]) => isTold).map(([, , text]) => text),
    told.filter(([isTold]) => !isTold).map(([, name]) => name),
  ];
  if (lacking.length === 0) return ok(`Without booting, the BMC tells ${has.join(', ')}.`);
  return missing(
    `The BMC tells ${has.join(', ') || 'nothing'}, but not: ${lacking.join(', ')}.`,
    'Inspect by the agent: inspect_interface=agent. Many services tell more while the machine is on.',
  );
}

async function bios(machine: ProbedMachine): Promise<Outcome> {
  const resource = await readLinked(machine.ask, systemOf(machine), 'Bios');
  if (!resource) return missing('The system has no resource Bios.', 'Leave out the BIOS steps.');
  const attributes = Object.keys((member(resource.body, 'Attributes') as object | undefined) ?? {}).length;
  const settings = linkOf(member(resource.body, '@Redfish.Settings', 'SettingsObject'));
  if (attributes === 0)
    return missing('The resource Bios has no attributes.', 'Turn the machine on once; some services fill them at a start.');
  if (settings === undefined)
    return unknown(`${counted(attributes, 'attribute')}; the service names no settings resource, so changes may be refused.`);
  const times = textsOf(member(resource.body, '@Redfish.Settings', 'SupportedApplyTimes'));
  return ok(`${counted(attributes, 'attribute')}; changes go to ${settings}${times ? ` and apply at ${listed(times)}` : ''}.`);
}

async function bootMode(machine: ProbedMachine): Promise<Outcome> {
  const { boot } = await bootOf(machine);
  const mode = textOf(member(boot, 'BootSourceOverrideMode'));
  const modes = allowableValues(boot, 'BootSourceOverrideMode');
  if (mode === undefined && !modes)
    return missing(
      'The service does not tell the boot mode.',
      "Set it in the firmware's menu, and as the capability boot_mode of the node.",
    );
  return ok(`The machine boots by ${mode ?? 'a mode that is not told'}${modes ? `; ${listed(modes)} can be set` : ''}.`);
}

async function raid(machine: ProbedMachine): Promise<Outcome> {
  const storages = (await linkedCollection(machine.ask, systemOf(machine), 'Storage')) ?? [];
  if (storages.length === 0) return missing('The system has no Storage resources.', 'Use software RAID, or the RAID of the agent.');
  const able = [];
  for (const storage of storages.slice(0, 16)) {
    const volumes = linkOf(member(storage.body, 'Volumes'));
    const read = volumes === undefined ? undefined : await machine.ask('GET', volumes).catch(notFatal(undefined));
    if (read && !/^(?!.*\bPOST\b)./i.test(read.headers['allow'] ?? '')) able.push(storage);
  }
  const drives = storages.reduce((sum, { body }) => sum + listOf(member(body, 'Drives')).length, 0);
  const text = `${counted(storages.length, 'controller')} with ${counted(drives, 'drive')}; ${able.length} of them may take volumes.`;
  return able.length > 0 ? ok(text) : missing(text, 'Use software RAID.');
}

async function firmware(machine: ProbedMachine): Promise<Outcome> {
  const service = await readLinked(machine.ask, machine.root, 'UpdateService');
  if (!service) return missing('There is no UpdateService.', 'Update the firmware by the page of the BMC.');
  const { body } = service;
  const items = linkOf(member(body, 'FirmwareInventory'));
  const count = items === undefined ? 0 : (await memberPaths(machine.ask, items).catch(notFatal([]))).length;
  const pushes = textOf(member(body, 'MultipartHttpPushUri')) ?? textOf(member(body, 'HttpPushUri'));
  if (member(body, 'ServiceEnabled') === false) return wrong('The UpdateService is disabled.', 'Enable it at the BMC.');
  const action = actionOf(service, '#UpdateService.SimpleUpdate');
  const inventory = `${counted(count, 'component')} in the inventory`;
  if (!action)
    return missing(
      `The service takes no firmware from a URL (SimpleUpdate); ${pushes === undefined ? '' : 'it takes uploads; '}${inventory}.`,
      'Update the firmware by the page of the BMC.',
    );
  const protocols = await action.allowed(machine.ask, 'TransferProtocol');
  return ok(`Firmware from a URL (SimpleUpdate${protocols ? ` by ${listed(protocols)}` : ''}); ${inventory}.`);
}

async function secureBoot(machine: ProbedMachine): Promise<Outcome> {
  const resource = await readLinked(machine.ask, systemOf(machine), 'SecureBoot');
  if (!resource) return missing('The system has no resource SecureBoot.', "Switch it in the firmware's menu.");
  const enabled = member(resource.body, 'SecureBootEnable');
  if (typeof enabled !== 'boolean')
    return unknown('The service does not tell whether Secure Boot is enabled.', 'Some tell it only in UEFI mode.');
  const resets = actionOf(resource, '#SecureBoot.ResetKeys') ? '; keys can be reset' : '';
  return ok(`Secure Boot is ${enabled ? 'enabled' : 'disabled'}${resets}.`);
}

async function sensors(machine: ProbedMachine): Promise<Outcome> {
  const links = listOf(member(systemOf(machine).body, 'Links', 'Chassis')).flatMap((item) => linkOf(item) ?? []);
  const paths =
    links.length > 0 ? links : await memberPaths(machine.ask, linkOf(member(machine.root.body, 'Chassis')) ?? rootPath(machine.target));
  const kinds = new Set<string>();
  for (const path of paths.slice(0, 4)) {
    const { body } = await readResource(machine.ask, path);
    for (const name of ['Thermal', 'Power', 'ThermalSubsystem', 'PowerSubsystem', 'Sensors', 'EnvironmentMetrics'])
      if (linkOf(member(body, name)) !== undefined) kinds.add(name);
  }
  return kinds.size > 0 ? ok(`The chassis has ${listed([...kinds])}.`) : missing('The chassis shows no sensors.', 'Read them by IPMI.');
}

async function events(machine: ProbedMachine): Promise<Outcome> {
  const service = await readLinked(machine.ask, machine.root, 'EventService');
  if (!service) return missing('There is no EventService.', 'Nothing: the server reads the logs instead.');
  if (member(service.body, 'ServiceEnabled') === false)
    return wrong('The EventService is disabled.', 'Enable it at the BMC, or let the server read the logs.');
  const isOpen = linkOf(member(service.body, 'Subscriptions')) !== undefined;
  return isOpen ? ok('The service takes subscriptions.') : missing('The EventService has no subscriptions.');
}

/** How a console of a system or manager is reached: by its list, or by the members of a system's SerialConsole. */
function connectionsOf(console: unknown): readonly string[] {
  if (member(console, 'ServiceEnabled') === false) return [];
  const types = textsOf(member(console, 'ConnectTypesSupported')) ?? [];
  const own = ['SSH', 'IPMI', 'Telnet', 'WebSocket'].filter((name) => {
    const way = member(console, name);
    return way !== undefined && way !== null && member(way, 'ServiceEnabled') !== false;
  });
  return types.length > 0 ? types : own;
}
function consoles({ system, managers }: ProbedMachine): Outcome {
  const told = ['SerialConsole', 'GraphicalConsole'].flatMap((name) => {
    const ways = [system, ...managers].flatMap((resource) => connectionsOf(member(resource?.body, name)));
    return ways.length > 0 ? [`${name} by ${listed([...new Set(ways)])}`] : [];
  });
  return told.length > 0
    ? ok(`The service has a ${told.join(' and a ')}.`)
    : missing('The service tells of no console that is enabled.', 'Use the console by IPMI (serial-over-LAN).');
}

async function logs(machine: ProbedMachine): Promise<Outcome> {
  const names: string[] = [];
  for (const resource of [machine.system, ...machine.managers.slice(0, 2)]) {
    const services = resource ? await linkedCollection(machine.ask, resource, 'LogServices').catch(notFatal(undefined)) : undefined;
    for (const { body } of services ?? [])
      if (linkOf(member(body, 'Entries')) !== undefined) names.push(textOf(member(body, 'Id')) ?? 'log');
  }
  return names.length > 0 ? ok(`Logs: ${listed(names)}.`) : missing('There are no logs.', 'Nothing: health comes from sensors and states.');
}

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const spanOf = (milliseconds: number): string =>
  milliseconds < 2 * DAY ? `${Math.round(milliseconds / MINUTE)} minutes` : `${Math.round(milliseconds / DAY)} days`;
/** Milliseconds. More breaks certificates and tasks. */
const MAX_OFFSET = 300_000;
function clock({ managers, now }: ProbedMachine): Outcome {
  const told = managers.map(({ body }) => textOf(member(body, 'DateTime'))).find((value) => value !== undefined);
  const time = told === undefined ? NaN : Date.parse(told);
  if (Number.isNaN(time)) return unknown('The BMC does not tell its time.');
  const offset = time - now();
  if (Math.abs(offset) <= MAX_OFFSET) return ok("The BMC's clock is right to within 5 minutes.");
  return wrong(
    `The BMC's clock is ${spanOf(Math.abs(offset))} ${offset < 0 ? 'slow' : 'fast'}, or its time zone is not told.`,
    'Set it: certificates, tasks and events depend on it. The step set_bmc_clock does.',
  );
}

export const REDFISH_CHECKS: readonly Check<ProbedMachine>[] = [
  {
    name: 'login',
    neededFor: ['everything'],
    run: async ({ ask, root, login, target }) => {
      const link = linkOf(member(root.body, 'Systems'));
      const error = link === undefined ? undefined : await ask('GET', link).then(() => undefined, redfishError);
      if (isStatus(error, 401, 403)) {
        if (target.username === undefined) throw new ProbeEnd(wrong('The service wants a login.', 'Name the account by --username.'));
        throw new ProbeEnd(redfishOutcome(error)!);
      }
      return login === 'none'
        ? ok('The service answers without a login.')
        : ok(login === 'session' ? 'By a session, which is ended again.' : 'By basic authentication.');
    },
  },
  {
    name: 'system',
    neededFor: ['everything'],
    run: ({ systems, system }) => {
      if (!system) return wrong('The service names no system that can be read.', 'Name the path of the system by --system-id.');
      if (systems.length > 1)
        return wrong(
          `The service has ${systems.length} systems, ${listed(systems, 8)}; this is about ${system.path}.`,
          'Set redfish_system_id of the node to the path of its system.',
        );
      return ok(`The system is ${system.path}.`);
    },
  },
  { name: 'power', neededFor: ['power'], run: resetTypes },
  {
    name: 'network boot',
    neededFor: ['PXE'],
    run: (machine) =>
      bootTarget(
        machine,
        ['Pxe'],
        'The machine can be told to boot from the network',
        'Set the order in the menu of the firmware, or boot from virtual media.',
      ),
  },
  {
    name: 'disk boot',
    neededFor: ['boot device'],
    run: (machine) =>
      bootTarget(machine, ['Hdd'], 'The machine can be told to boot from its disk', 'Set the order in the menu of the firmware.'),
  },
  {
    name: 'HTTP boot',
    neededFor: ['HTTP boot'],
    optional: true,
    run: (machine) =>
      bootTarget(machine, ['UefiHttp'], 'The machine can be told to boot by HTTP', 'Use the boot interface ipxe or http-ipxe.'),
  },
  {
    name: 'CD boot',
    neededFor: ['virtual media'],
    optional: true,
    run: (machine) => bootTarget(machine, ['Cd', 'UsbCd'], 'The machine can be told to boot from a CD', 'Boot from the network instead.'),
  },
  { name: 'virtual media', neededFor: ['virtual media'], optional: true, run: virtualMedia },
  { name: 'boot mode', neededFor: ['boot mode'], optional: true, run: bootMode },
  { name: 'secure boot', neededFor: ['Secure Boot'], optional: true, run: secureBoot },
  { name: 'inspection', neededFor: ['inspection'], optional: true, run: inspection },
  { name: 'BIOS', neededFor: ['BIOS'], optional: true, run: bios },
  { name: 'firmware', neededFor: ['firmware'], optional: true, run: firmware },
  { name: 'RAID', neededFor: ['RAID'], optional: true, run: raid },
  { name: 'sensors', neededFor: ['sensors', 'health'], optional: true, run: sensors },
  { name: 'events', neededFor: ['events'], optional: true, run: events },
  { name: 'console', neededFor: ['console'], optional: true, run: consoles },
  { name: 'logs', neededFor: ['logs', 'health'], optional: true, run: logs },
  { name: 'clock', neededFor: ['certificates', 'tasks', 'events'], optional: true, run: clock },
];
