/** docs/reference/hardware.md: which functions of each interface work, with which counterparts, and which test shows it. */

import { PERSONALITIES, type PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { IDRAC, STOPS, bootOf } from './maker-lives';

/**
 * The counterpart of a test. `bent`: a service of the tests whose answers are as wrong as a BMC's can be. It shows how we handle errors,
 * not that real BMCs work.
 */
const COUNTERPARTS = ['bent', 'simulator', 'sushy-tools', 'virtualbmc', 'ipmi_sim', 'pyghmi', 'real'] as const;
type Counterpart = (typeof COUNTERPARTS)[number];
/**
 * `file: the beginning of a title`; the file is below tests/. The title is that of a test or of a `describe`, as it is written or as
 * `.each` makes it of a row.
 */
type Proof = string;
export interface HardwareRow {
  readonly type: 'ipmi' | 'intel-ipmi' | 'redfish' | 'idrac';
  readonly kind: string;
  readonly name: string;
  readonly feature: string;
  readonly proofs: Readonly<Partial<Record<Counterpart, Proof>>>;
}

const row = (type: HardwareRow['type'], kind: string, name: string, feature: string, proofs: HardwareRow['proofs']): HardwareRow => ({
  type,
  kind,
  name,
  feature,
  proofs,
});
const SIM_IPMI = 'lab/deployment/lifecycle.test.ts: simulator-ipmi';
const SIM_REDFISH = 'lab/deployment/lifecycle.test.ts: simulator-redfish';
const REFERENCE = 'reference/hardware/redfish.test.ts';
const DELL = 'reference/hardware/idrac.test.ts';
const END_TO_END_IPMI = 'lab/deployment/end-to-end-ipmi.test.ts';
const END_TO_END_REDFISH = 'lab/deployment/end-to-end-redfish.test.ts';

export const HARDWARE: readonly HardwareRow[] = [
  row('ipmi', 'power', 'ipmitool', 'on, off, soft, reboot, state', {
    bent: 'drivers/ipmi/management.test.ts: power',
    simulator: SIM_IPMI,
    virtualbmc: 'lab/ipmi/virtualbmc.test.ts: the IPMI driver switches the machine on and off',
    ipmi_sim: 'lab/ipmi/ipmi.test.ts: reads and changes the power',
    pyghmi: 'lab/ipmi/ipmi.test.ts: reads and changes the power and the boot device',
  }),
  row('ipmi', 'power', 'ipmitool', 'from enrolment to deletion by the CLI', {
    simulator: SIM_IPMI,
    virtualbmc: `${END_TO_END_IPMI}: bios-virtualbmc`,
    ipmi_sim: `${END_TO_END_IPMI}: uefi-ipmi`,
  }),
  row('ipmi', 'power', 'ipmitool', 'a silent BMC does not count as powered off', {
    bent: 'lab/ipmi/ipmi-server.test.ts: does not take a BMC that stops responding for a machine that is off',
    simulator: 'lab/ipmi/ipmi-network.test.ts: with 20 % packet loss and 300 ms latency',
  }),
  row('ipmi', 'power', 'ipmitool', 'RMCP+ with each cipher suite', {
    simulator: 'lab/ipmi/ipmi.test.ts: executes power and chassis commands of FreeIPMI with cipher suite %i',
    ipmi_sim: 'lab/ipmi/ipmi.test.ts: opens a session with cipher suite %i',
  }),
  row('ipmi', 'power', 'ipmitool', 'IPMI 1.5', {
    simulator: 'lab/ipmi/ipmi.test.ts: responds to ipmitool and FreeIPMI with IPMI 1.5',
    ipmi_sim: 'lab/ipmi/ipmi.test.ts: opens a session with IPMI 1.5',
  }),
  row('ipmi', 'power', 'ipmitool', 'the program ipmitool in its place (`[ipmi]client`)', {
    bent: 'lab/ipmi/ipmi-server.test.ts: the server with [ipmi]client = ipmitool',
  }),
  row('ipmi', 'management', 'ipmitool', 'boot device, once and for good', {
    bent: 'drivers/ipmi/management.test.ts: boot device',
    simulator: SIM_IPMI,
    virtualbmc: 'lab/ipmi/virtualbmc.test.ts: the IPMI driver sets the boot device %s',
    ipmi_sim: 'lab/ipmi/ipmi.test.ts: sets the boot device',
    pyghmi: 'lab/ipmi/ipmi.test.ts: reads and changes the power and the boot device',
  }),
  row('ipmi', 'management', 'ipmitool', 'sensors', {
    simulator: 'lab/ipmi/ipmi-stores.test.ts: our client reads the same sensors as Ironic parses from ipmitool',
    ipmi_sim: 'lab/ipmi/ipmi-stores.test.ts: our client reads the same sensors as Ironic parses from ipmitool',
  }),
  row('ipmi', 'management', 'ipmitool', 'single bridging', {
    simulator: 'lab/ipmi/ipmi-stores.test.ts: our client reaches a controller behind the BMC by single bridging',
    ipmi_sim: 'lab/ipmi/ipmi-stores.test.ts: our client reaches a controller behind the BMC by single bridging',
  }),
  row('ipmi', 'management', 'ipmitool', 'dual bridging', {
    simulator: 'lab/ipmi/ipmi-stores.test.ts: our client reaches a controller on a second bus by dual bridging, as ipmitool does',
  }),
  row('ipmi', 'management', 'ipmitool', 'non-maskable interrupt', {
    bent: 'drivers/ipmi/management.test.ts: sends the chassis control "diagnostic interrupt"',
  }),
  row('ipmi', 'console', 'ipmitool-socat', 'serial over LAN', {
    bent: 'drivers/ipmi/console.test.ts: connects one client at a time to the serial console',
    ipmi_sim: "lab/ipmi/ipmi-sol.test.ts: our client exchanges text with OpenIPMI's ipmi_sim by serial-over-LAN",
  }),
  row('ipmi', 'vendor', 'ipmitool', '`send_raw`, `bmc_reset`', { bent: 'drivers/ipmi/management.test.ts: vendor methods' }),
  row('ipmi', 'vendor', 'ipmitool', '`sel`, `clear_sel`, `fru`', {
    simulator: 'lab/ipmi/ipmi-stores.test.ts: the vendor methods sel and clear_sel read and clear the event log',
    ipmi_sim: 'lab/ipmi/ipmi-stores.test.ts: the vendor method fru reads the inventory',
  }),

  row('redfish', 'console', 'redfish-graphical', 'the screen of OpenBMC, the consoles of other BMCs by a link', {
    bent: 'drivers/graphical/redfish.test.ts: shows the screen of an OpenBMC',
  }),
  row('redfish', 'power', 'redfish', 'on, off, soft, reboot, state', {
    bent: 'drivers/redfish/steps/management.test.ts: power',
    simulator: SIM_REDFISH,
    'sushy-tools': `${END_TO_END_REDFISH}: bios-redfish`,
  }),
  row('redfish', 'power', 'redfish', 'login, certificates, wrong passwords and addresses', {
    bent: 'drivers/redfish/steps/management.test.ts: connection errors',
    'sushy-tools': 'lab/redfish/redfish.test.ts: fails for %j with a message that names the reason',
  }),
  row('redfish', 'power', 'redfish', 'a soft reboot, also of a machine that must not be off', {
    bent: 'drivers/redfish/steps/management.test.ts: set to "soft rebooting" without GracefulRestart shuts the machine down and starts it, if it may be off',
  }),
  row('redfish', 'management', 'redfish', 'power, boot device, media, inspection, sensors, firmware and BIOS of BMCs with odd behaviours', {
    bent: 'drivers/redfish/odd-bmcs.test.ts: a BMC that %s',
  }),
  row('redfish', 'management', 'redfish', 'the same of BMCs with the habits of makers', {
    bent: 'drivers/redfish/makers.test.ts: machine %s',
  }),
  row('redfish', 'management', 'redfish', 'boot device, once and for good', {
    bent: 'drivers/redfish/steps/management.test.ts: boot device',
    simulator: SIM_REDFISH,
    'sushy-tools': 'lab/redfish/redfish.test.ts: sets the boot device %s, persistent %s',
  }),
  row('redfish', 'management', 'redfish', 'boot mode', {
    bent: 'drivers/redfish-management.test.ts: boot mode',
    simulator: `${REFERENCE}: PUT …/states/boot_mode with {"target":"bios"}`,
    'sushy-tools': 'lab/redfish/redfish.test.ts: changes the boot mode',
  }),
  row('redfish', 'management', 'redfish', 'secure boot', {
    bent: 'drivers/redfish-management.test.ts: secure boot',
    simulator: `${REFERENCE}: PUT …/states/secure_boot with {"target":true}`,
  }),
  row('redfish', 'management', 'redfish', 'keys of secure boot', {
    bent: 'drivers/redfish-management.test.ts: secure boot',
    simulator: `${REFERENCE}: both servers delete the keys of secure boot`,
  }),
  row('redfish', 'management', 'redfish', 'update_firmware', {
    bent: 'drivers/redfish/steps/firmware.test.ts: management.update_firmware',
    simulator: `${REFERENCE}: management.update_firmware updates the BIOS`,
  }),
  row('redfish', 'management', 'redfish', 'non-maskable interrupt', {
    bent: 'drivers/redfish/steps/management.test.ts: injectNmi',
  }),
  row('redfish', 'management', 'redfish', 'indicator lamps', {
    bent: 'drivers/redfish-management.test.ts: are found on chassis, system and drives',
    simulator: `${REFERENCE}: both servers show and set indicators`,
  }),
  row('redfish', 'management', 'redfish', 'clock of the BMC', { bent: 'drivers/redfish-management.test.ts: clock of the BMC' }),
  row('redfish', 'management', 'redfish', 'virtual media, for users too', {
    bent: 'drivers/redfish/virtual-media.test.ts: virtual media for clients',
    simulator: `${REFERENCE}: both servers attach and detach virtual media`,
    'sushy-tools': `${END_TO_END_REDFISH}: bios-cd`,
  }),
  row('redfish', 'management', 'redfish', 'sensors', {
    bent: 'drivers/redfish/sensors.test.ts: reads Thermal and Power in the format of Ironic',
    'sushy-tools': 'lab/redfish/redfish.test.ts: the Redfish driver reads the sensors of a chassis',
  }),
  row('redfish', 'boot', 'redfish-virtual-media', 'the ramdisk from a CD, BIOS and UEFI', {
    bent: 'drivers/boot-interfaces/virtual-media-boot.test.ts: ramdisk',
    'sushy-tools': `${END_TO_END_REDFISH}: uefi-cd`,
  }),
  row('redfish', 'boot', 'redfish-https', 'the ramdisk by UEFI HTTP boot', {
    bent: 'drivers/boot-interfaces/virtual-media-boot.test.ts: by HTTP',
    simulator: 'lab/redfish/redfish-https.test.ts: with %s, a machine boots the ramdisk from the URL in HttpBootUri',
    'sushy-tools': 'lab/redfish/redfish-https.test.ts: with %s, a machine boots the ramdisk from the URL in HttpBootUri',
  }),
  row('redfish', 'boot', 'redfish-https', 'the ramdisk by UEFI HTTPS boot, of OVMF', {
    simulator: 'lab/redfish/redfish-https.test.ts: with simulator, HTTPS, a machine boots the ramdisk',
  }),
  row('redfish', 'management', 'redfish', 'virtual media from a server that wants a name and a password', {
    bent: 'drivers/redfish/virtual-media.test.ts: sends credentials and the protocol to the BMC',
    'sushy-tools':
      'lab/redfish/redfish-settings.test.ts: insertMedium inserts an image, write-protected, from a server that requires a user name and a password',
  }),
  row('redfish', 'raid', 'redfish', 'which drives become a volume, as Ironic chooses them', {
    bent: 'reference/hardware/raid-plan.test.ts: our server chooses the drives for RAID volumes as Ironic does',
  }),
  row('redfish', 'raid', 'redfish', 'create_configuration, delete_configuration', {
    bent: 'drivers/redfish/steps/raid.test.ts: create a volume at a reboot',
    simulator: `${REFERENCE}: create_configuration creates volumes`,
  }),
  row('redfish', 'bios', 'redfish', 'settings with their registry, apply_configuration', {
    bent: 'drivers/redfish/steps/bios.test.ts: apply_configuration',
    simulator: `${REFERENCE}: apply_configuration applies settings %s`,
    'sushy-tools': 'lab/redfish/redfish-settings.test.ts: apply_configuration changes settings',
  }),
  row('redfish', 'bios', 'redfish', 'factory_reset', {
    bent: 'drivers/redfish/steps/bios.test.ts: factory_reset',
    simulator: `${REFERENCE}: factory_reset resets the settings`,
    'sushy-tools': 'lab/redfish/redfish-settings.test.ts: factory_reset restores the default settings',
  }),
  row('redfish', 'management', 'redfish', 'modes of network ports', {
    bent: 'drivers/redfish/steps/network-adapters.test.ts: restarts, waits until the mode is there, and stores the ports',
    simulator: 'flows/provisioning/default-config-network.test.ts: gives each rack its mode, shows what differs, and brings it back',
  }),
  row('redfish', 'firmware', 'redfish', 'updates of BIOS and BMC', {
    bent: 'drivers/redfish/steps/firmware.test.ts: source of the firmware file',
    simulator: `${REFERENCE}: firmware.update updates BIOS and BMC`,
    'sushy-tools': 'lab/redfish/redfish-settings.test.ts: update installs BIOS firmware',
  }),
  row('redfish', 'firmware', 'redfish', 'an update in cleaning: progress, a refused file, its conductor killed', {
    simulator: 'flows/hardware/redfish-firmware.test.ts: another conductor continues the updates after the first one was killed',
  }),
  row('redfish', 'firmware', 'redfish', 'updates of network cards', {
    bent: 'drivers/redfish/steps/firmware.test.ts: nic',
    simulator: `${REFERENCE}: firmware.update updates a network card`,
  }),
  row('redfish', 'management', 'redfish', 'MAC addresses, of which ports are made before inspection (`[inspector]pre_create_ports`)', {
    bent: 'drivers/redfish-management.test.ts: are those of interfaces that are enabled and healthy',
    simulator: 'reference/inspection/inspection.test.ts: both servers create the ports that the BMC knows before the agent reports',
  }),
  row('redfish', 'inspect', 'redfish', 'properties, ports and inventory, the same as real Ironic’s', {
    bent: 'drivers/redfish/inspect.test.ts: returns the inventory of a complete machine',
    simulator: 'reference/inspection/inspection.test.ts: both servers inspect a machine of simulator alike, with properties {}',
    'sushy-tools': 'reference/inspection/inspection.test.ts: both servers inspect a machine of libvirt alike, with properties {}',
  }),
  row('redfish', 'management', 'redfish', 'events for [health](../health.md), and the logs', {
    bent: 'drivers/redfish/events.test.ts: subscribes at a service that',
    simulator: 'flows/observation/bmc-events.test.ts: an event makes the server read what it names, although no round reads the sensors',
  }),
  row('redfish', 'vendor', 'redfish', 'event subscriptions', { bent: 'drivers/redfish/vendor.test.ts: subscriptions' }),
  row('redfish', 'vendor', 'redfish', '`eject_vmedia`', { bent: 'drivers/redfish/vendor.test.ts: eject_vmedia' }),

  row('intel-ipmi', 'management', 'intel-ipmitool', 'configure_intel_speedselect', {
    bent: 'drivers/ipmi/speed-select.test.ts: configure_intel_speedselect with %j',
  }),
  row('idrac', 'management', 'idrac-redfish', 'clear_job_queue', {
    bent: 'drivers/idrac/management.test.ts: clear_job_queue deletes all jobs',
    simulator: `${DELL}: both servers clear the job queue in cleaning`,
  }),
  row('idrac', 'management', 'idrac-redfish', 'reset_idrac, known_good_state', {
    bent: 'drivers/idrac/management.test.ts: reset_idrac',
    simulator: `${DELL}: both servers reset the iDRAC`,
  }),
  row('idrac', 'boot', 'idrac-redfish-virtual-media', 'the ramdisk from the virtual CD, of each generation', {
    bent: 'drivers/idrac/boot.test.ts: inserts the ramdisk into the first slot, and makes the iDRAC boot it once, by its configuration',
    simulator: 'reference/hardware/idrac-generations.test.ts: both servers do the same with %s on %s',
  }),
  row('idrac', 'inspect', 'idrac-redfish', 'service tag, the card that boots, switches', {
    bent: 'drivers/idrac/inspect.test.ts: the card that boots',
    simulator: `${DELL}: both servers inspect the machine`,
  }),
  row('idrac', 'raid', 'idrac-redfish', 'drives outside of RAID, modes of controllers, foreign configurations', {
    bent: 'drivers/idrac/raid.test.ts: delete_configuration',
    simulator: `${DELL}: both servers create RAID volumes`,
  }),
  row('idrac', 'bios', 'idrac-redfish', 'settings in spite of an older job that waits', {
    bent: 'drivers/idrac/bios.test.ts: an older job with BIOS settings that waits is deleted, and no other job',
    simulator: `${DELL}: both servers apply BIOS settings`,
  }),
  ...(['power', 'vendor'] as const).map((kind) =>
    row('idrac', kind, 'idrac-redfish', 'as `redfish`', {
      bent: {
        power: 'drivers/redfish/steps/management.test.ts: power',
        vendor: 'drivers/redfish/vendor.test.ts: subscriptions',
      }[kind],
    }),
  ),
];

/** Vendors' own behaviour of BMCs, and how we handle it. */
const NOTES: readonly (readonly [string, string, string])[] = [
  ['Supermicro, IPMI', 'boot disks in UEFI mode as a “remote hard drive” only', 'sends 0x24 where `properties.vendor` is `supermicro`'],
  ['Supermicro, Redfish', 'present virtual media as a USB drive', 'sets UsbCd for `cdrom`'],
  ['Supermicro, Redfish', 'forget the boot mode with each boot device', 'sets the mode again'],
  ['AMI, ASRock Rack', 'accept boot settings only all together', 'sends mode, persistence and device in one change'],
  ['many', 'refuse changes without the ETag, or with it', 'sends the ETag, then its strong form, then the one of now, then none'],
  ['some', 'demand an ETag (428), and show none', 'sends `*`'],
  ['many', 'end sessions with 403, or with a 401 that breaks off', 'logs in again, once'],
  ['iLO, iDRAC', 'are not ready for some seconds (`InvalidOperationForSystemState`, `SYS518`)', 'tries again for half a minute'],
  ['some', 'drop connections that are used again', 'repeats the request, and then has a connection for each'],
  [
    'Supermicro and others',
    'send header lines with spaces at the wrong place, or with LF alone',
    'mends them ([0017](../decisions/0017-malformed-http-of-bmcs.md))',
  ],
  ['some', 'link with whole URLs, or with spaces', 'follows links to the service itself'],
  ['OpenBMC and others', 'put error messages beside properties, or not into a list', 'reads them'],
  ['some', 'answer 202 to media, volumes or firmware without a task', 'reads the drive, the volumes or the versions'],
  ['Dell', 'forget tasks', 'reads the job; without one, the versions'],
  [
    'Dell iDRAC 8, iDRAC 9 below 6.0, iDRAC 10',
    'boot another medium than the virtual CD',
    'refuses `redfish-virtual-media`, as Ironic does; `idrac-redfish-virtual-media` works',
  ],
  ['some', 'show a medium for a while after its ejection', 'reads again'],
  ['Supermicro', 'show only the possible action of a virtual drive', 'reads the drive after each change'],
  ['some', 'show no `PowerState` while the machine starts', 'the power state is unknown until then'],
  ['AMI and others', 'list reset types in `@Redfish.ActionInfo`, or as an empty list', 'reads it; an empty list allows everything'],
  ['Huawei, KubeVirt’s', 'name the manager in `Links.Managers`, or nowhere', 'finds it there, or among all managers'],
  ['some', 'refuse `BootSourceOverrideEnabled: Once`', 'sends the device alone, and reads what came of it'],
  [
    'some',
    'have an empty first socket, or tell no architecture',
    'takes the first processor that tells it; the node keeps its own otherwise',
  ],
  ['OpenBMC, Intel, NVIDIA', 'show no network interface of the machine', 'inspects the rest'],
  ['many', 'refuse a persistent boot device (`Continuous`)', 'sets it for one boot, and again before each start'],
  ['many', 'refuse boot settings while the machine starts (409, 503)', 'tries again for half a minute'],
  ['many', 'have no session service', '`redfish_auth_type = auto` sends the password with each request'],
  ['some', 'fail at some of their resources', 'inspection omits those and logs it'],
  ['some', 'show the boot mode only in the settings of the system', 'reads it there'],
  [
    'some, IPMI',
    'number the packets of a session with 0, with the same number, or with jumps',
    'accepts signed packets, and opens a new session after 63 commands',
  ],
  [
    'some, IPMI 1.5',
    'use the session ID 0, sign packets although none need it, or ignore unsigned packets although they say otherwise',
    'works with each of them (workarounds `idzero`, `unexpectedauth`, `forcepermsg`)',
  ],
  ['some, IPMI', 'compute checksums wrongly inside signed packets, or answer with other addresses or LUNs', 'does not check these'],
  [
    'some, IPMI',
    'refuse single sensor records or SEL entries, or chain them in a circle',
    'reads the others; the response of `sel` has `complete: false`',
  ],
  ['some, IPMI', 'want a reservation for each SEL entry, or return only parts of it', 'reserves, and reads in portions'],
  [
    'some, IPMI',
    'say that a FRU device is larger than it is, or that an area of it has another length',
    'reads what there is; `faults` names the area',
  ],
  ['many, IPMI', 'end serial-over-LAN in an outage without notice', 'activates it again, or ends the console with the reason'],
  ['ipmi_sim (OpenIPMI 2.0.33)', 'does not follow IPMI 2.0 §13.32 in cipher suites 7, 8 and 12 (below)', 'suites 0 to 3, 6 and 11 work'],
  ['ipmi_sim (OpenIPMI 2.0.33)', 'has no SHA256 (suites 15 to 17)', 'FreeIPMI with our simulator tests these suites'],
  ['virtualbmc, pyghmi', 'know few commands of IPMI', 'power and boot device work; sensors and the like return an error'],
  ['sushy-tools', 'calls its BIOS registry by another name than its file', 'finds it by the name in the registry itself'],
  ['sushy-tools', 'shows volumes without their RAID level, and deletes none', 'creates them; they are not in `raid_config`'],
  ['sushy-tools', 'needs the system that an update is for, also when it has only one', 'names it where there are several, as Ironic does'],
  ['all', 'have no standard action for a foreign RAID configuration', 'offers none, as Ironic’s `redfish`'],
  ['all', 'show a foreign configuration in `Volumes`', '`delete_configuration` deletes it'],
  ['sushy-tools', 'fetches the image of `HttpBootUri` itself, and puts it into the CD drive', 'the machine boots it from there'],
  ['sushy-tools', 'with `WriteProtected: false` keeps a CD read-only, but makes a floppy disk writable', 'never asks for writable media'],
  ['sushy-tools', 'fails (500) at Storage when none is configured', 'uses SimpleStorage'],
];

const KINDS = {
  ipmi: 'IPMI (`ipmi`)',
  'intel-ipmi': 'IPMI of Intel machines (`intel-ipmi`)',
  redfish: 'Redfish (`redfish`)',
  idrac: 'Redfish of Dell machines (`idrac`)',
} as const;
const link = (proof: Proof | undefined): string => {
  if (proof === undefined) return '';
  const [file] = proof.split(': ');
  return `[✔](../../tests/${file})`;
};
export function hardwarePage(): string {
  const table = (type: HardwareRow['type']): readonly string[] => [
    `## ${KINDS[type]}`,
    '',
    `| interface | feature | ${COUNTERPARTS.join(' | ')} |`,
    `|---|---|${COUNTERPARTS.map(() => '---|').join('')}`,
    ...HARDWARE.filter((candidate) => candidate.type === type).map(
      ({ kind, name, feature, proofs }) =>
        `| ${kind} \`${name}\` | ${feature} | ${COUNTERPARTS.map((counterpart) => link(proofs[counterpart])).join(' | ')} |`,
    ),
    '',
  ];
  return [
    '# Hardware',
    '',
    'This page is for operators who want to know whether their BMCs work: what works with IPMI and Redfish, and what it was tested with.',
    'It is generated from `tests/support/pages/hardware-page.ts`; do not edit it (`UPDATE_DOCS=1 npx jest tests/drivers/hardware-page` writes it).',
    '',
    'Each mark links to the test, which runs with `npm test` (below `lab/`: with `npm run test:lab`; below `reference/`: with `npm run test:reference`).',
    'An empty field means that nothing is known.',
    '',
    '- **bent**: a service of the tests that returns wrong responses on purpose.',
    '- **simulator**: `bloomery simulate`. These programs test it in turn:',
    '  - ipmitool, FreeIPMI, pyghmi and sushy; serial over LAN: ipmitool and ipmiconsole ([ipmi-sol.test.ts](../../tests/lab/ipmi/ipmi-sol.test.ts))',
    '  - ipmitool and plain HTTP, with a machine in QEMU behind it ([simulate-qemu.test.ts](../../tests/lab/simulator/simulate-qemu.test.ts))',
    '  - real Ironic ([simulator.test.ts](../../tests/reference/hardware/simulator.test.ts)); [redfish.test.ts](../../tests/reference/hardware/redfish.test.ts) compares its findings with ours on the same machine',
    '  - DMTF’s validators of the protocol and the schemas ([redfish-validators.test.ts](../../tests/lab/redfish/redfish-validators.test.ts))',
    "- **sushy-tools** 2.2.0, **virtualbmc** 3.3.0, OpenIPMI's **ipmi_sim** and **pyghmi**'s fake BMC come from their own packages.",
    '- **real**: a physical BMC. Nobody has reported one yet.',
    '',
    'These tables do not have interfaces that do not use a BMC themselves:',
    '',
    '- `agent` inspection ([inspection.test.ts](../../tests/lab/inspection/inspection.test.ts))',
    '- `discoverd`, tested with the real ironic-inspector 12.5 and with our own service ([discoverd.test.ts](../../tests/lab/inspection/discoverd.test.ts))',
    '',
    ...table('ipmi'),
    'The other interfaces of `intel-ipmi` are those of `ipmi`.',
    '',
    ...table('intel-ipmi'),
    ...table('redfish'),
    'The other interfaces of `idrac` are those of `redfish`: see [dell.md](../dell.md).',
    '',
    ...table('idrac'),
    '## Simulated machines of makers',
    '',
    '`bloomery simulate --personality` imitates machines of makers by what is reported of them ([makers.md](makers.md)).',
    'A node lives on each of them twice: it is enrolled, inspected, cleaned, deployed and undeployed, and its ramdisk comes from the network or from a virtual CD.',
    'One test shows both: [personalities.test.ts](../../tests/flows/hardware/personalities.test.ts).',
    'In the lab, a machine in QEMU boots for real behind each of them ([makers.test.ts](../../tests/lab/redfish/makers.test.ts) and [all-makers.test.ts](../../tests/lab/redfish/all-makers.test.ts)).',
    'It shows nothing of real machines.',
    '',
    '| simulated maker | from the network | from a virtual CD | in the lab |',
    '|---|---|---|---|',
    ...Object.entries(PERSONALITIES).map(([name, { product }]) => {
      const { boot, mode } = bootOf(name as PersonalityName);
      const type = (IDRAC as readonly string[]).includes(name) ? '✔ (`idrac`)' : '✔';
      return `| ${product} (\`${name}\`) | ✔ | ${(STOPS as Readonly<Record<string, { readonly words: string }>>)[name]?.words ?? type} | ✔ ${boot}, ${mode === 'uefi' ? 'UEFI' : 'BIOS'} |`;
    }),
    '',
    '## Peculiarities of BMCs',
    '',
    'These peculiarities are known from reports; a test service reproduces each of them.',
    'The vendor is `properties.vendor` of the node, which its verification sets.',
    '',
    '| BMCs | peculiarity | what Bloomery does |',
    '|---|---|---|',
    ...NOTES.map((words) => `| ${words.join(' | ')} |`),
    '',
    'ipmi_sim signs HMAC-MD5-128 with the password, not with K1.',
    'It makes K2 for MD5 of 16 bytes, not of 20 (IPMI 2.0 §13.32).',
    'With it, cipher suites 7, 8 and 12 do not work here, and 7 and 8 do not work with ipmitool either.',
    '',
  ].join('\n');
}
