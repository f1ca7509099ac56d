/**
 * Makers' machines as data: what their services show, and which habits they have. The facts come from other projects (each habit names its
 * source). They were read, not measured, and may be true for one firmware only.
 */
import type { Habit, Ids, Maker } from '../protocol/habits';
import type { ResourceBody } from '../protocol/routes';
import { merged, shows } from './change';
import { HABITS, type HabitName } from './habits';

interface Personality {
  /** What it is, for people. */
  readonly product: string;
  /** As the system shows it, and the machine's SMBIOS. */
  readonly manufacturer: string;
  readonly model: string;
  readonly ids: Ids;
  /** Versions of the firmware before the first update. */
  readonly firmware: { readonly bmc: string; readonly bios: string };
  /** Type of a resource → what it shows besides or instead of the standard; undefined removes a property. */
  readonly shows?: Readonly<Record<string, ResourceBody>>;
  readonly habits: readonly HabitName[];
}
const root = (version: string, vendor: string | undefined, more: ResourceBody = {}): Readonly<Record<string, ResourceBody>> => ({
  ServiceRoot: { RedfishVersion: version, Vendor: vendor, ...more },
});

export const PERSONALITIES = {
  'dell-idrac8': {
    product: 'Dell PowerEdge 13G, iDRAC 8',
    manufacturer: 'Dell Inc.',
    model: 'PowerEdge R630',
    ids: { system: 'System.Embedded.1', manager: 'iDRAC.Embedded.1', chassis: 'System.Embedded.1' },
    firmware: { bmc: '2.75.75.75', bios: '2.13.0' },
    shows: {
      ...root('1.4.0', undefined, {
        Oem: { Dell: { '@odata.type': '#DellServiceRoot.v1_0_0.ServiceRootSummary', ManagerMACAddress: '52:55:00:00:00:00' } },
      }),
      Manager: { Model: '13G Monolithic' },
    },
    habits: ['sessions-at-root', 'serial-is-sku', 'power-actions-refused-when-needless'],
  },
  'dell-idrac9': {
    product: 'Dell PowerEdge 14G to 16G, iDRAC 9',
    manufacturer: 'Dell Inc.',
    model: 'PowerEdge R650',
    ids: { system: 'System.Embedded.1', manager: 'iDRAC.Embedded.1', chassis: 'System.Embedded.1' },
    firmware: { bmc: '7.10.30.00', bios: '1.12.1' },
    shows: {
      ...root('1.17.0', 'Dell', {
        Product: 'Integrated Dell Remote Access Controller',
        Oem: { Dell: { '@odata.type': '#DellServiceRoot.v1_0_0.DellServiceRoot', IsBranded: 0 } },
      }),
      Manager: { Model: '15G Monolithic' },
    },
    habits: ['etag-gzip', 'serial-is-sku', 'power-state-null', 'power-actions-refused-when-needless'],
  },
  'dell-idrac10': {
    product: 'Dell PowerEdge 17G, iDRAC 10',
    manufacturer: 'Dell Inc.',
    model: 'PowerEdge R670',
    ids: { system: 'System.Embedded.1', manager: 'iDRAC.Embedded.1', chassis: 'System.Embedded.1' },
    firmware: { bmc: '1.20.25.00', bios: '1.2.6' },
    shows: {
      ...root('1.20.1', 'Dell', {
        Product: 'Integrated Dell Remote Access Controller',
        Oem: { Dell: { '@odata.type': '#DellServiceRoot.v1_0_0.DellServiceRoot', IsBranded: 0 } },
      }),
      Manager: { Model: '17G Monolithic' },
    },
    habits: ['etag-refused-at-actions', 'boot-settings-only', 'power-actions-refused-when-needless'],
  },
  'hpe-ilo5': {
    product: 'HPE ProLiant Gen10, iLO 5',
    manufacturer: 'HPE',
    model: 'ProLiant DL360 Gen10',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: 'iLO 5 v2.72', bios: 'U32 v2.68 (07/14/2022)' },
    shows: {
      ...root('1.6.0', 'HPE', {
        Product: 'ProLiant DL360 Gen10',
        Oem: { Hpe: { '@odata.type': '#HpeiLOServiceExt.v2_4_0.HpeiLOServiceExt', Moniker: { PRODGEN: 'iLO 5' } } },
      }),
      Manager: { Model: 'iLO 5' },
    },
    habits: ['login-refused-at-times', 'connections-drop-at-reuse', 'try-again-ilo'],
  },
  'supermicro-x11': {
    product: 'Supermicro X11',
    manufacturer: 'Supermicro',
    model: 'SYS-6019P-MT',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: '01.74.13', bios: '3.9' },
    shows: root('1.8.0', undefined),
    habits: [],
  },
  'lenovo-xcc': {
    product: 'Lenovo ThinkSystem, XCC',
    manufacturer: 'Lenovo',
    model: 'ThinkSystem SR650',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: 'CDI3A4E', bios: 'IVE184F' },
    shows: root('1.16.0', 'Lenovo', { Oem: { Lenovo: { '@odata.type': '#LenovoServiceRoot.v1_0_0.LenovoServiceRoot' } } }),
    habits: ['sessions-few', 'etag-changes-at-read'],
  },
  'fujitsu-irmc-s5': {
    product: 'Fujitsu PRIMERGY, iRMC S5',
    manufacturer: 'FUJITSU',
    model: 'PRIMERGY RX2540 M5',
    ids: { system: '0', manager: 'iRMC', chassis: '0' },
    firmware: { bmc: '3.37P', bios: 'V1.0.0.0 R1.60.0' },
    shows: root('1.5.0', undefined, { Oem: { ts_fujitsu: { AutoLoginToken: 'none' } } }),
    habits: ['etag-bare'],
  },
  'ami-gigabyte': {
    product: 'Gigabyte, AMI MegaRAC',
    manufacturer: 'GIGABYTE',
    model: 'R272-Z32-00',
    ids: { system: 'Self', manager: 'Self', chassis: 'Self' },
    firmware: { bmc: '12.61.21', bios: 'R23' },
    shows: root('1.11.0', undefined, { Oem: { Ami: { '@odata.type': '#AMIServiceRoot.v1_0_0.AMIServiceRoot' } } }),
    habits: ['etag-demanded-in-silence'],
  },
  openbmc: {
    product: 'OpenBMC, bmcweb',
    manufacturer: 'OpenBMC',
    model: 'Reference board',
    ids: { system: 'system', manager: 'bmc', chassis: 'chassis' },
    firmware: { bmc: '2.14.0', bios: '0.91' },
    shows: root('1.17.0', undefined, { Product: undefined }),
    habits: ['errors-beside-property'],
  },
  'nvidia-dgx-h100': {
    product: 'NVIDIA DGX H100',
    manufacturer: 'NVIDIA',
    model: 'DGXH100',
    ids: { system: 'DGX', manager: 'BMC', chassis: 'DGX' },
    firmware: { bmc: '24.01.05', bios: '1.1.3' },
    shows: root('1.11.0', 'AMI'),
    habits: ['etag-demanded-in-silence', 'etag-any-only'],
  },
} as const satisfies Readonly<Record<string, Personality>>;
export type PersonalityName = keyof typeof PERSONALITIES;
export const isPersonality = (name: string): name is PersonalityName => Object.hasOwn(PERSONALITIES, name);
export const personalityOf = (name: PersonalityName): Personality => PERSONALITIES[name];

/** Merges what a personality shows into the resources; a member that is undefined there is left out. */
const showing = (product: string, type: string, more: ResourceBody): Habit => ({
  about: `${type} of ${product}`,
  source: '',
  around: shows(type, (body) => defined(merged(body, more))),
});
const defined = (body: ResourceBody): ResourceBody => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));

/** What a machine deviates by: a personality, single habits, or both. */
export interface MakerChoice {
  readonly personality?: PersonalityName | undefined;
  readonly habits?: readonly HabitName[] | undefined;
}
const made = new Map<string, Maker>();
/** Undefined: the machine deviates from nothing. */
export function makerOf({ personality: name, habits = [] }: MakerChoice): Maker | undefined {
  if (name === undefined && habits.length === 0) return undefined;
  const key = `${name ?? ''} ${habits.join()}`;
  const known = made.get(key);
  if (known) return known;
  const personality: Personality | undefined = name && PERSONALITIES[name];
  const names = new Set<HabitName>([...(personality?.habits ?? []), ...habits]);
  const shown = Object.entries(personality?.shows ?? {}).map(([type, more]) => showing(personality!.product, type, more));
  const maker: Maker = {
    ...(personality && { ids: personality.ids }),
    habits: [...[...names].map((habit): Habit => HABITS[habit]), ...shown],
  };
  made.set(key, maker);
  return maker;
}
