/** All interfaces (name in the API → implementation) and hardware types (name → interface names). Nothing registers itself elsewhere. */
import type { InterfaceKind } from '../model/records';
import { bootcDeploy } from './agent/bootc';
import { customAgentDeploy } from './agent/deploy';
import { agentInspect } from './agent/inspect';
import { agentPower } from './agent/power';
import { agentRaid } from './agent/raid';
import { agentRescue } from './agent/rescue';
import { directDeploy } from './agent/direct';
import { discoverdInspect } from './agent/discoverd';
import { fakeBoot, fakeConsole, fakeDeploy, fakeInspect, fakeManagement, fakePower, fakeRaid, fakeRescue, fakeStorage } from './fake/fake';
import { fakeBios, fakeFirmware } from './fake/settings';
import { fakeVendor } from './fake/vendor';
import { fakeGraphicalConsole } from './graphical/fake';
import { redfishGraphicalConsole } from './graphical/redfish';
import { vncConsole } from './graphical/vnc';
import { anacondaDeploy } from './anaconda/deploy';
import { autodetectDeploy } from './autodetect';
import { ANY, type HardwareType, type Interfaces } from './interfaces';
import { idracBios } from './idrac/bios';
import { idracVirtualMediaBoot } from './idrac/boot';
import { idracInspect } from './idrac/inspect';
import { idracManagement } from './idrac/management';
import { idracRaid } from './idrac/raid';
import { ipmiManagement } from './ipmi/management';
import { ipmiPower } from './ipmi/power';
import { ipmiConsole } from './ipmi/console';
import { ipmiBmcOf } from './ipmi/target';
import { intelIpmiManagement } from './ipmi/speed-select';
import { ipmiVendor } from './ipmi/vendor';
import { httpBoot, httpIpxeBoot, ipxeBoot, pxeBoot } from './boot-interfaces/network-boot';
import { noBios, noConsole, noFirmware, noInspect, noRaid, noRescue, noVendor } from './common/no-interfaces';
import { ironicNetworking } from './network/ironic-networking';
import { flatNetwork, neutronNetwork } from './network/neutron';
import { noopDeploy, noopManagement, noopNetwork, noopStorage } from './noop';
import { cinderStorage } from './storage/cinder';
import { externalStorage } from './storage/external';
import { ramdiskDeploy } from './agent/ramdisk-deploy';
import { redfishManagement } from './redfish/steps/management';
import { redfishBios } from './redfish/steps/bios';
import { redfishFirmware } from './redfish/steps/firmware';
import { redfishInspect } from './redfish/inspect';
import { redfishPower } from './redfish/power';
import { redfishBmcOf } from './redfish/target';
import { redfishVendor } from './redfish/vendor';
import { redfishRaid } from './redfish/steps/raid';
import { redfishHttpsBoot, redfishVirtualMediaBoot } from './boot-interfaces/virtual-media-boot';

export const INTERFACES: Interfaces = {
  bios: { 'idrac-redfish': idracBios, redfish: redfishBios, 'no-bios': noBios, fake: fakeBios },
  boot: {
    ipxe: ipxeBoot,
    pxe: pxeBoot,
    'http-ipxe': httpIpxeBoot,
    http: httpBoot,
    fake: fakeBoot,
    'redfish-virtual-media': redfishVirtualMediaBoot,
    'idrac-redfish-virtual-media': idracVirtualMediaBoot,
    'redfish-https': redfishHttpsBoot,
  },
  console: {
    'ipmitool-socat': ipmiConsole,
    'redfish-graphical': redfishGraphicalConsole,
    vnc: vncConsole,
    'no-console': noConsole,
    'fake-graphical': fakeGraphicalConsole,
    fake: fakeConsole,
  },
  deploy: {
    autodetect: autodetectDeploy,
    direct: directDeploy,
    ramdisk: ramdiskDeploy,
    bootc: bootcDeploy,
    anaconda: anacondaDeploy,
    'custom-agent': customAgentDeploy,
    noop: noopDeploy,
    fake: fakeDeploy,
  },
  inspect: {
    redfish: redfishInspect,
    'idrac-redfish': idracInspect,
    agent: agentInspect,
    discoverd: discoverdInspect,
    'no-inspect': noInspect,
    fake: fakeInspect,
  },
  firmware: { redfish: redfishFirmware, 'no-firmware': noFirmware, fake: fakeFirmware },
  management: {
    ipmitool: ipmiManagement,
    'intel-ipmitool': intelIpmiManagement,
    redfish: redfishManagement,
    'idrac-redfish': idracManagement,
    noop: noopManagement,
    fake: fakeManagement,
  },
  network: { flat: flatNetwork, neutron: neutronNetwork, 'ironic-networking': ironicNetworking, noop: noopNetwork },
  power: { ipmitool: ipmiPower, redfish: redfishPower, 'idrac-redfish': redfishPower, agent: agentPower, fake: fakePower },
  raid: { redfish: redfishRaid, 'idrac-redfish': idracRaid, 'no-raid': noRaid, agent: agentRaid, fake: fakeRaid },
  rescue: { 'no-rescue': noRescue, agent: agentRescue, fake: fakeRescue },
  storage: { noop: noopStorage, cinder: cinderStorage, external: externalStorage, fake: fakeStorage },
  vendor: { ipmitool: ipmiVendor, redfish: redfishVendor, 'idrac-redfish': redfishVendor, 'no-vendor': noVendor, fake: fakeVendor },
};

/** The interfaces that every hardware type supports, the best first. Names without an implementation yet mark their place in the order. */
const generic = {
  bios: ['no-bios'],
  boot: ['ipxe', 'pxe', 'http-ipxe', 'http'],
  console: ['no-console', 'vnc', 'fake-graphical'],
  deploy: ['autodetect', 'direct', 'ansible', 'ramdisk', 'anaconda', 'bootc', 'custom-agent'],
  firmware: ['no-firmware'],
  inspect: ['agent', 'discoverd', 'no-inspect'],
  network: ['flat', 'neutron', 'ironic-networking', 'noop'],
  raid: ['no-raid', 'agent'],
  rescue: ['no-rescue', 'agent'],
  storage: ['noop', 'cinder', 'external'],
  vendor: ['no-vendor'],
} as const satisfies Partial<Record<InterfaceKind, readonly string[]>>;

/** A node of the fake type may have any enabled interface; the type lists the fake and the generic ones. */
const fakeFirst = (names: readonly string[]): readonly string[] => ['fake', ...names, ANY];

const ipmi: HardwareType = {
  className: 'IPMIHardware',
  bmcOf: ipmiBmcOf,
  ...generic,
  console: ['ipmitool-socat', ...generic.console],
  management: ['ipmitool', 'noop'],
  power: ['ipmitool'],
  vendor: ['ipmitool', 'no-vendor'],
};
const redfish: HardwareType = {
  className: 'RedfishHardware',
  bmcOf: redfishBmcOf,
  impatient: { 'redfish.connection_attempts': 1 },
  ...generic,
  bios: ['redfish', ...generic.bios],
  boot: [...generic.boot, 'redfish-virtual-media', 'redfish-https'],
  console: ['redfish-graphical', 'ipmitool-socat', ...generic.console],
  firmware: ['redfish', ...generic.firmware],
  inspect: ['redfish', ...generic.inspect],
  management: ['redfish', 'noop'],
  power: ['redfish'],
  raid: ['redfish', ...generic.raid],
  vendor: ['redfish', 'no-vendor'],
};

export const HARDWARE_TYPES: Readonly<Record<string, HardwareType>> = {
  ipmi,
  redfish,
  'intel-ipmi': { ...ipmi, className: 'IntelIPMIHardware', management: ['intel-ipmitool'] },
  idrac: {
    ...redfish,
    className: 'IDRACHardware',
    bios: ['idrac-redfish', ...redfish.bios],
    boot: [...generic.boot, 'idrac-redfish-virtual-media', 'redfish-https'],
    inspect: ['idrac-redfish', ...generic.inspect],
    management: ['idrac-redfish'],
    power: ['idrac-redfish', ...redfish.power],
    raid: ['idrac-redfish', ...generic.raid],
    vendor: ['idrac-redfish', ...redfish.vendor],
  },
  'manual-management': {
    className: 'ManualManagementHardware',
    ...generic,
    deploy: [...generic.deploy, 'noop'],
    management: ['noop', 'fake'],
    power: ['agent', 'fake'],
  },
  'fake-hardware': {
    className: 'FakeHardware',
    bmcOf: (info) => redfishBmcOf(info) ?? ipmiBmcOf(info),
    bios: fakeFirst(generic.bios),
    boot: fakeFirst(generic.boot),
    console: fakeFirst(generic.console),
    deploy: fakeFirst(generic.deploy),
    firmware: fakeFirst(generic.firmware),
    inspect: fakeFirst(generic.inspect),
    management: fakeFirst([]),
    network: [...generic.network, ANY],
    power: fakeFirst([]),
    raid: fakeFirst(generic.raid),
    rescue: fakeFirst(generic.rescue),
    storage: fakeFirst(generic.storage),
    vendor: fakeFirst(generic.vendor),
  },
};
