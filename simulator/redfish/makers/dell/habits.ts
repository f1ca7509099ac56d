/** Habits of Dell's iDRAC. */
import { findTask, isTaskOver } from '../../../hardware/task-records';
import type { Around, Habit } from '../../protocol/habits';
import { link, type ResourceBody, type ServiceAnswer, type System } from '../../protocol/routes';
import { BIOS_SETTINGS, RESET, SYSTEM, bootOf, instead, merged, problem, replies, sentBody, shows, together } from '../change';
import { DELL_ATTRIBUTE_ROUTES, MANAGER_ATTRIBUTE_ROUTES, attributesLink, attributesOf } from './attributes';
import { JOB_NAMES, JOB_ROUTES, addJob, biosJobWaits, jobOf, jobServiceLink, jobsLink } from './jobs';
import { DELL_SERVICE_ROUTES, configurationActions, exportedConfiguration, raidServiceLink, serviceLink } from './services';

const NICS = [1, 2, 3, 4];
const DISKS = ['sda', 'sdb', 'sdc', 'sdd', 'sde', 'sdf', 'sdg', 'sdh'];
const RAID = 'RAID.Integrated.1-1';
const ADAPTER = '/Chassis/{chassis}/NetworkAdapters/NIC.Integrated.1';
const rows = (all: readonly (readonly [string, string])[]): Readonly<Record<string, string>> => Object.fromEntries(all);
const NAMES = rows([
  ...NICS.map(
    (nic) => [`/Systems/{system}/EthernetInterfaces/${nic}`, `/Systems/{system}/EthernetInterfaces/NIC.Integrated.1-${nic}-1`] as const,
  ),
  ...NICS.map(
    (nic) =>
      [
        `/Chassis/{chassis}/NetworkAdapters/NIC1/NetworkDeviceFunctions/${nic}`,
        `${ADAPTER}/NetworkDeviceFunctions/NIC.Integrated.1-${nic}-1`,
      ] as const,
  ),
  ...NICS.map((nic) => [`/Chassis/{chassis}/NetworkAdapters/NIC1/Ports/${nic}`, `${ADAPTER}/Ports/NIC.Integrated.1-${nic}`] as const),
  ['/Chassis/{chassis}/NetworkAdapters/NIC1', ADAPTER],
  ...DISKS.map(
    (disk, bay) =>
      [
        `/Systems/{system}/Storage/RAID1/Drives/${disk}`,
        `/Systems/{system}/Storage/${RAID}/Drives/Disk.Bay.${bay}:Enclosure.Internal.0-1:${RAID}`,
      ] as const,
  ),
  ['/Systems/{system}/Storage/RAID1', `/Systems/{system}/Storage/${RAID}`],
]);
/** Adds to Links.Oem.Dell. */
const dellLinks = (type: string, more: (system: System) => ResourceBody): Around =>
  shows(type, (body, { system }) => merged(body, { Links: { Oem: { Dell: more(system) } } }));
const TASK = /^\/redfish\/v1\/TaskService\/(?:Tasks|TaskMonitors)\/[^/]+$/;
/** A task has the job in its Oem part, and is 202 until it is over. That of an export answers with the configuration then. */
const tasksAreJobs: Around = replies('GET', TASK, (answer, { system }, { path }): ServiceAnswer => {
  const task = findTask(system.hardware, path.slice(path.lastIndexOf('/') + 1));
  if (!task || !answer.body) return answer;
  if (!isTaskOver(task))
    return { ...answer, status: 202, body: { ...answer.body, Oem: { Dell: jobOf(task) } }, headers: { ...answer.headers, location: path } };
  const isExport = task.work.kind === 'done' && task.work.what === 'ExportConfiguration' && task.phase === 'completed';
  return { ...answer, status: 200, body: isExport ? exportedConfiguration(system) : { ...answer.body, Oem: { Dell: jobOf(task) } } };
});
/** An iDRAC does not say when to ask again. */
const untimed: Around = replies(/./, /./, (answer) =>
  answer.headers?.['retry-after'] === undefined
    ? answer
    : { ...answer, headers: Object.fromEntries(Object.entries(answer.headers).filter(([name]) => name !== 'retry-after')) },
);
const PXE_ATTRIBUTES: ResourceBody = {
  ...Object.fromEntries(
    NICS.flatMap((nic) => [
      [`PxeDev${nic}EnDis`, nic === 1 ? 'Enabled' : 'Disabled'],
      [`PxeDev${nic}Interface`, 'NIC.Integrated.1-1-1'],
    ]),
  ),
  HttpDev1EnDis: 'Disabled',
  HttpDev1Interface: 'NIC.Integrated.1-1-1',
  SetBootOrderFqdd1: '',
};
const PHYSICAL = 'physical';
/** What a lockdown protects. */
const CONFIGURATION =
  /\/Bios\/Settings$|\/Bios\.(?:ResetBios|ChangePassword)$|\/Systems\/[^/]+\/Storage\/|\/DellRaidService\.|\/DellJobService\.|\/Dell\/Jobs\/|ImportSystemConfiguration$|\/UpdateService\//;

export const DELL_HABITS = {
  'dell-names': {
    about: 'NICs, storage and drives have the names of an iDRAC (FQDD): NIC.Integrated.1-1-1, RAID.Integrated.1-1.',
    source: 'openstack/ironic drivers/modules/drac/inspect.py; dell/iDRAC-Redfish-Scripting',
    paths: NAMES,
  },
  'dell-jobs': {
    about: 'Each task is a job of the job queue, with the same number (JID_…), and DellJobService empties the queue.',
    source: 'openstack/sushy oem/dell/resources/manager/job_collection.py, job_service.py',
    around: together(
      dellLinks('Manager', ({ name }) => ({ Jobs: jobsLink(name), DellJobService: jobServiceLink(name) })),
      tasksAreJobs,
      untimed,
    ),
    routes: JOB_ROUTES,
    names: JOB_NAMES,
  },
  'dell-bios-jobs': {
    about: 'A change of BIOS settings makes a job for the next start; until it is over, another change gets 400 (SYS011).',
    source: 'dell/iDRAC-Redfish-Scripting; NVIDIA/libredfish src/dell.rs',
    around: together(
      instead(
        'PATCH',
        BIOS_SETTINGS,
        problem(400, 'IDRAC.2.8.SYS011', 'Pending configuration values are already committed, unable to perform another set operation.'),
        (_, { system }) => biosJobWaits(system),
      ),
      async (asked, next, context) => {
        const answer = await next(asked);
        if (asked.method !== 'PATCH' || !BIOS_SETTINGS.test(asked.path) || answer.status >= 300) return answer;
        return addJob(context, 'Configure: BIOS.Setup.1-1', 'BIOSConfiguration', 'staged').answer;
      },
    ),
  },
  'dell-services': {
    about: 'The services of an iDRAC: readiness (DellLCService), reset, import and export of the configuration, RAID, switch connections.',
    source: 'openstack/sushy oem/dell; openstack/ironic drivers/modules/drac/inspect.py',
    around: together(
      dellLinks('Manager', ({ name }) => ({
        DellLCService: serviceLink('DellLCService', name),
        DelliDRACCardService: serviceLink('DelliDRACCardService', name),
      })),
      shows('Manager', (body, { system }) => merged(body, { Actions: { Oem: configurationActions(system.name) } })),
      dellLinks('ComputerSystem', ({ name }) => ({ DellRaidService: raidServiceLink(name) })),
      shows('StorageController', (body) => merged(body, { Oem: { Dell: { DellStorageController: { ControllerMode: 'RAID' } } } })),
    ),
    routes: DELL_SERVICE_ROUTES,
  },
  'dell-attributes': {
    about: 'The attributes of the iDRAC are in DellAttributes, ServerBoot.1.FirstBootDevice among them.',
    source: 'openstack/sushy oem/dell/resources/attributes.py; NVIDIA/libredfish src/dell.rs',
    around: dellLinks('Manager', ({ name }) => ({ DellAttributes: attributesLink(name) })),
    routes: DELL_ATTRIBUTE_ROUTES,
  },
  'dell-manager-attributes': {
    about: 'The attributes of the iDRAC are in Managers/…/Attributes too.',
    source: 'dell/iDRAC-Redfish-Scripting 90',
    around: shows('Manager', (body, { system }) => ({ ...body, Attributes: link(`/Managers/${system.name}/Attributes`) })),
    routes: MANAGER_ATTRIBUTE_ROUTES,
  },
  'dell-lockdown': {
    about: 'While Lockdown.1.SystemLockdown is Enabled, changes of BIOS, storage, firmware, jobs and configuration get 400 (SYS520).',
    source: 'NVIDIA/libredfish src/dell.rs; dell/iDRAC-Redfish-Scripting',
    around: instead(
      /^(?:PATCH|POST|DELETE)$/,
      CONFIGURATION,
      problem(400, 'IDRAC.2.8.SYS520', 'Unable to complete the operation because the system is in lockdown mode.'),
      (_, { system }) => attributesOf(system)['Lockdown.1.SystemLockdown'] === 'Enabled',
    ),
  },
  'dell-pxe-attributes': {
    about: 'The BIOS shows which NICs boot by PXE and HTTP (PxeDev1EnDis, PxeDev1Interface, HttpDev1EnDis).',
    source: 'openstack/ironic drivers/modules/drac/inspect.py',
    around: shows('Bios', (body, _, { path }) => (path.endsWith('/Bios') ? merged(body, { Attributes: PXE_ATTRIBUTES }) : body)),
  },
  'cd-is-physical': {
    about: 'The boot target Cd is the physical drive; the virtual CD needs ServerBoot.1.FirstBootDevice VCD-DVD.',
    source: 'openstack/sushy oem/dell/resources/manager/manager.py; dell/iDRAC-Redfish-Scripting 90',
    around: async (asked, next, context) => {
      const { system, memory } = context;
      if (RESET.test(asked.path)) memory.delete(PHYSICAL);
      if (asked.method === 'PATCH' && SYSTEM.test(asked.path)) {
        const boot = bootOf(await sentBody(asked));
        const answer = await next(asked);
        if (answer.status >= 300 || boot['BootSourceOverrideTarget'] === undefined) return answer;
        memory.delete(PHYSICAL);
        if (boot['BootSourceOverrideTarget'] !== 'Cd') return answer;
        memory.set(PHYSICAL, boot['BootSourceOverrideEnabled'] ?? 'Once');
        // The physical drive is empty, so that the firmware goes on to its next device.
        system.setBoot({ ...system.boot(), device: 'none', persistent: false });
        return answer;
      }
      const enabled = memory.get(PHYSICAL);
      if (enabled === undefined) return next(asked);
      const shown = { Boot: { BootSourceOverrideTarget: 'Cd', BootSourceOverrideEnabled: enabled } };
      return shows('ComputerSystem', (body) => merged(body, shown))(asked, next, context);
    },
  },
} as const satisfies Readonly<Record<string, Habit>>;
