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

const IDRAC_IDS: Ids = { system: 'System.Embedded.1', manager: 'iDRAC.Embedded.1', chassis: 'System.Embedded.1' };
/** The service root from iDRAC 9 on. */
const IDRAC_ROOT: ResourceBody = {
  Product: 'Integrated Dell Remote Access Controller',
  Oem: { Dell: { '@odata.type': '#DellServiceRoot.v1_0_0.DellServiceRoot', IsBranded: 0 } },
};
const IDRAC_HABITS = [
  'dell-names',
  'dell-jobs',
  'dell-bios-jobs',
  'dell-services',
  'dell-attributes',
  'dell-lockdown',
  'dell-pxe-attributes',
  'serial-is-sku',
  'power-actions-refused-when-needless',
] as const satisfies readonly HabitName[];

export const PERSONALITIES = {
  'dell-idrac8': {
    product: 'Dell PowerEdge 13G, iDRAC 8',
    manufacturer: 'Dell Inc.',
    model: 'PowerEdge R630',
    ids: IDRAC_IDS,
    firmware: { bmc: '2.75.75.75', bios: '2.13.0' },
    shows: { ...root('1.4.0', undefined, { Oem: { Dell: {} } }), Manager: { Model: '13G Monolithic' } },
    habits: [
      'dell-names',
      'dell-jobs',
      'dell-bios-jobs',
      'dell-services',
      'dell-pxe-attributes',
      'serial-is-sku',
      'power-actions-refused-when-needless',
      'sessions-at-root',
      'cd-is-physical',
      'media-slots-numbered',
      'media-of-manager-only',
    ],
  },
  'dell-idrac9-5': {
    product: 'Dell PowerEdge 14G, iDRAC 9 below 6.00',
    manufacturer: 'Dell Inc.',
    model: 'PowerEdge R640',
    ids: IDRAC_IDS,
    firmware: { bmc: '5.10.10.05', bios: '2.12.2' },
    shows: {
      ...root('1.11.0', 'Dell', IDRAC_ROOT),
      Manager: { Model: '14G Monolithic' },
    },
    habits: [
      ...IDRAC_HABITS,
      'dell-manager-attributes',
      'etag-gzip',
      'cd-is-physical',
      'media-slots-numbered',
      'media-of-manager-only',
      'media-eject-stale',
      'power-on-not-kept',
    ],
  },
  'dell-idrac9': {
    product: 'Dell PowerEdge 14G to 16G, iDRAC 9',
    manufacturer: 'Dell Inc.',
    model: 'PowerEdge R650',
    ids: IDRAC_IDS,
    firmware: { bmc: '7.10.30.00', bios: '1.12.1' },
    shows: {
      ...root('1.17.0', 'Dell', IDRAC_ROOT),
      Manager: { Model: '15G Monolithic' },
    },
    habits: [
      ...IDRAC_HABITS,
      'dell-manager-attributes',
      'etag-gzip',
      'power-state-null',
      'media-slots-numbered',
      'media-eject-stale',
      'task-monitors-late',
      'try-again-idrac',
    ],
  },
  'dell-idrac10': {
    product: 'Dell PowerEdge 17G, iDRAC 10',
    manufacturer: 'Dell Inc.',
    model: 'PowerEdge R670',
    ids: IDRAC_IDS,
    firmware: { bmc: '1.20.25.00', bios: '1.2.6' },
    shows: {
      ...root('1.20.1', 'Dell', IDRAC_ROOT),
      Manager: { Model: '17G Monolithic' },
    },
    habits: [...IDRAC_HABITS, 'etag-refused-at-actions', 'boot-settings-only', 'media-slots-numbered', 'media-of-system-only'],
  },
  'hpe-ilo4': {
    product: 'HPE ProLiant Gen9, iLO 4',
    manufacturer: 'HP',
    model: 'ProLiant DL360 Gen9',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: 'iLO 4 v2.82', bios: 'P89 v2.80 (10/16/2020)' },
    shows: {
      ...root('1.0.0', undefined, { Oem: { Hp: { '@odata.type': '#HpiLOServiceExt.1.0.0.HpiLOServiceExt' } } }),
      Manager: { Model: 'iLO 4' },
    },
    habits: [
      'boot-mode-fixed',
      'media-slots-usb-first',
      'media-without-inserted',
      'bios-in-small-letters',
      'connections-drop-at-reuse',
      'login-refused-at-times',
      'post-state',
      'serial-with-spaces',
    ],
  },
  'hpe-ilo5': {
    product: 'HPE ProLiant Gen10, iLO 5',
    manufacturer: 'HPE',
    model: 'ProLiant DL360 Gen10',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: 'iLO 5 v2.72', bios: 'U32 v2.68 (07/14/2022)' },
    shows: {
      ...root('1.6.0', 'HPE', { Product: 'ProLiant DL360 Gen10', Oem: { Hpe: { Moniker: { PRODGEN: 'iLO 5' } } } }),
      Manager: { Model: 'iLO 5' },
    },
    habits: [
      'media-slots-usb-first',
      'media-ejected-by-reset',
      'bios-in-small-letters',
      'connections-drop-at-reuse',
      'login-refused-at-times',
      'try-again-ilo',
      'boot-refused-in-post',
      'post-state',
      'serial-with-spaces',
      'subscription-exists',
      'subscriptions-without-retry-policy',
    ],
  },
  'hpe-ilo6': {
    product: 'HPE ProLiant Gen11, iLO 6',
    manufacturer: 'HPE',
    model: 'ProLiant DL360 Gen11',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: 'iLO 6 v1.57', bios: 'U54 v1.48 (10/19/2023)' },
    shows: {
      ...root('1.13.0', 'HPE', { Product: 'ProLiant DL360 Gen11', Oem: { Hpe: { Moniker: { PRODGEN: 'iLO 6' } } } }),
      Manager: { Model: 'iLO 6' },
    },
    habits: [
      'media-slots-usb-first',
      'media-ejected-by-reset',
      'bios-in-small-letters',
      'connections-drop-at-reuse',
      'login-refused-at-times',
      'boot-refused-in-post',
      'post-state',
      'subscription-exists',
      'subscriptions-without-retry-policy',
    ],
  },
  'hpe-ilo7': {
    product: 'HPE ProLiant Gen12, iLO 7',
    manufacturer: 'HPE',
    model: 'ProLiant DL360 Gen12',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: 'iLO 7 v1.12', bios: 'U68 v1.20 (02/07/2025)' },
    shows: {
      ...root('1.20.0', 'HPE', { Product: 'ProLiant DL360 Gen12', Oem: { Hpe: { Moniker: { PRODGEN: 'iLO 7' } } } }),
      Manager: { Model: 'iLO 7' },
    },
    habits: [
      'media-slots-usb-first',
      'media-ejected-by-reset',
      'bios-in-small-letters',
      'boot-refused-in-post',
      'post-state',
      'subscription-exists',
    ],
  },
  'supermicro-x11': {
    product: 'Supermicro X11',
    manufacturer: 'Supermicro',
    model: 'SYS-6019P-MT',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: '01.74.13', bios: '3.9' },
    shows: root('1.8.0', undefined),
    habits: [
      'boot-enabled-always',
      'boot-mode-reverts',
      'boot-cd-is-usb',
      'media-slots-cd1',
      'media-image-only',
      'media-name-stays',
      'sessions-end-in-page',
    ],
  },
  'supermicro-x13': {
    product: 'Supermicro X12 to X14',
    manufacturer: 'Supermicro',
    model: 'SYS-621C-TN12R',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: '01.03.18', bios: '2.1' },
    shows: root('1.11.0', 'Supermicro'),
    habits: [
      'boot-enabled-always',
      'boot-mode-reverts',
      'boot-cd-is-usb',
      'media-slots-cd1',
      'media-image-only',
      'media-name-stays',
      'media-plain-urls',
      'bios-settings-at-sd',
      'bios-names-suffixed',
      'bios-pending-empty-without-attributes',
      'uefi-http-unlisted',
      'tasks-untold',
    ],
  },
  'lenovo-xcc': {
    product: 'Lenovo ThinkSystem, XCC',
    manufacturer: 'Lenovo',
    model: 'ThinkSystem SR650',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: 'CDI3A4E', bios: 'IVE184F' },
    shows: root('1.16.0', 'Lenovo', { Oem: { Lenovo: {} } }),
    habits: [
      'sessions-few',
      'etag-demanded',
      'etag-changes-at-read',
      'boot-once-only',
      'media-by-patch',
      'media-slots-ext',
      'bios-settings-at-pending',
      'task-monitors-delete',
    ],
  },
  'lenovo-xcc3': {
    product: 'Lenovo ThinkSystem V4, XCC3',
    manufacturer: 'Lenovo',
    model: 'ThinkSystem SR650 V4',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: 'IHX401Q', bios: 'IHE103L' },
    shows: root('1.17.0', 'Lenovo', { Oem: { Lenovo: {} } }),
    habits: [
      'sessions-few',
      'etag-demanded',
      'etag-changes-at-read',
      'boot-once-only',
      'media-slots-ext',
      'bios-settings-at-pending',
      'tasks-become-jobs',
    ],
  },
  'fujitsu-irmc-s4': {
    product: 'Fujitsu PRIMERGY, iRMC S4',
    manufacturer: 'FUJITSU',
    model: 'PRIMERGY RX2540 M4',
    ids: { system: '0', manager: 'iRMC', chassis: '0' },
    firmware: { bmc: '9.64F', bios: 'V5.0.0.12 R1.42.0' },
    shows: root('1.0.2', undefined, { Oem: { ts_fujitsu: {} } }),
    habits: ['etag-bare', 'etag-demanded', 'patch-answers-200', 'boot-none-alone', 'media-of-fujitsu'],
  },
  'fujitsu-irmc-s6': {
    product: 'Fujitsu PRIMERGY, iRMC S5 and S6',
    manufacturer: 'FUJITSU',
    model: 'PRIMERGY RX2540 M7',
    ids: { system: '0', manager: 'iRMC', chassis: '0' },
    firmware: { bmc: '2.00P', bios: 'V1.0.0.0 R2.6.0' },
    shows: root('1.11.0', undefined, { Oem: { ts_fujitsu: {} } }),
    habits: ['etag-bare', 'etag-demanded', 'patch-answers-200', 'boot-none-alone'],
  },
  'cisco-cimc': {
    product: 'Cisco UCS C, CIMC',
    manufacturer: 'Cisco Systems Inc',
    model: 'UCSC-C220-M6S',
    ids: { system: 'WZP25010ABC', manager: 'CIMC', chassis: '1' },
    firmware: { bmc: '4.2(3b)', bios: 'C220M6.4.2.3b' },
    shows: root('1.2.0', undefined),
    habits: ['managers-empty', 'power-control-is-object', 'cpu-first-absent'],
  },
  'cisco-ucsx': {
    product: 'Cisco UCS X',
    manufacturer: 'Cisco Systems Inc',
    model: 'UCSX-210C-M7',
    ids: { system: 'FCH26457ABC', manager: 'CIMC', chassis: '1' },
    firmware: { bmc: '5.2(0.230127)', bios: 'X210M7.4.3.2a' },
    shows: root('1.9.0', undefined),
    habits: ['managers-empty', 'cpu-first-absent'],
  },
  'huawei-ibmc': {
    product: 'Huawei FusionServer, iBMC',
    manufacturer: 'Huawei',
    model: '2288H V5',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: '6.38', bios: '7.99' },
    shows: root('1.0.2', undefined, { Oem: { Huawei: {} } }),
    habits: ['etag-demanded', 'manager-in-links-managers', 'media-of-huawei'],
  },
  'xfusion-ibmc': {
    product: 'xFusion FusionServer, iBMC',
    manufacturer: 'XFUSION',
    model: '2288H V7',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: '3.05.03.55', bios: '1.06.11' },
    shows: root('1.6.0', undefined, { Oem: { Public: {} } }),
    habits: ['etag-demanded', 'media-of-huawei'],
  },
  inspur: {
    product: 'Inspur',
    manufacturer: 'Inspur',
    model: 'NF5280M5',
    ids: { system: '1', manager: '1', chassis: '1' },
    firmware: { bmc: '4.26.8', bios: '4.1.21' },
    shows: root('1.5.0', undefined),
    habits: ['members-as-strings'],
  },
  'gigabyte-ami': {
    product: 'Gigabyte, AMI MegaRAC',
    manufacturer: 'GIGABYTE',
    model: 'R272-Z32-00',
    ids: { system: 'Self', manager: 'Self', chassis: 'Self' },
    firmware: { bmc: '12.61.21', bios: 'R23' },
    shows: root('1.11.0', undefined, { Oem: { Ami: {} } }),
    habits: [
      'etag-demanded-in-silence',
      'boot-whole',
      'members-absent-if-empty',
      'reset-types-in-action-info',
      'bios-settings-at-sd',
      'media-after-enable',
    ],
  },
  'asrock-ami': {
    product: 'ASRock Rack, AMI MegaRAC',
    manufacturer: 'ASRockRack',
    model: 'ROMED8HM3',
    ids: { system: 'Self', manager: 'Self', chassis: 'Self' },
    firmware: { bmc: '2.06.00', bios: 'L3.43' },
    shows: root('1.8.0', undefined, { Oem: { Ami: {} } }),
    habits: [
      'etag-demanded-in-silence',
      'boot-whole',
      'boot-at-sd',
      'members-absent-if-empty',
      'reset-types-in-action-info',
      'serial-placeholder',
    ],
  },
  'lenovo-ami': {
    product: 'Lenovo ThinkSystem, AMI MegaRAC',
    manufacturer: 'Lenovo',
    model: 'ThinkSystem SR655',
    ids: { system: 'Self', manager: 'Self', chassis: 'Self' },
    firmware: { bmc: '7.10', bios: 'CFE131F' },
    shows: root('1.11.0', undefined, { Oem: { AMI: {} } }),
    habits: ['etag-demanded-in-silence', 'boot-whole', 'members-absent-if-empty', 'reset-types-in-action-info', 'bios-settings-at-sd'],
  },
  openbmc: {
    product: 'OpenBMC, bmcweb',
    manufacturer: 'OpenBMC',
    model: 'Reference board',
    ids: { system: 'system', manager: 'bmc', chassis: 'chassis' },
    firmware: { bmc: '2.14.0', bios: '0.91' },
    shows: root('1.17.0', undefined, { Product: undefined }),
    habits: [
      'errors-beside-property',
      'media-demands-transfer',
      'media-https-only',
      'bios-absent',
      'power-and-thermal-absent',
      'locates-by-active-only',
      'task-monitors-end-204',
    ],
  },
  'nvidia-dgx-h100': {
    product: 'NVIDIA DGX H100',
    manufacturer: 'NVIDIA',
    model: 'DGXH100',
    ids: { system: 'DGX', manager: 'BMC', chassis: 'DGX' },
    firmware: { bmc: '24.01.05', bios: '1.1.3' },
    shows: root('1.11.0', 'AMI', { Oem: { Ami: {} } }),
    habits: ['etag-demanded-in-silence', 'etag-any-only', 'boot-whole', 'systems-hgx', 'managers-hgx', 'bios-settings-at-sd'],
  },
  'nvidia-gh200': {
    product: 'NVIDIA GH200',
    manufacturer: 'NVIDIA',
    model: 'P4764',
    ids: { system: 'System_0', manager: 'BMC_0', chassis: 'Chassis_0' },
    firmware: { bmc: '24.07', bios: '2.3.1' },
    shows: root('1.17.0', undefined, { Product: 'P3809' }),
    habits: ['systems-hgx', 'managers-hgx', 'bios-absent', 'uefi-http-unlisted', 'power-and-thermal-absent'],
  },
  'nvidia-gb200': {
    product: 'NVIDIA GB200 NVL',
    manufacturer: 'NVIDIA',
    model: 'GB200 NVL',
    ids: { system: 'System_0', manager: 'BMC_0', chassis: 'Chassis_0' },
    firmware: { bmc: '25.02', bios: '2.3.6' },
    shows: root('1.17.0', 'NVIDIA', { Product: 'GB200 NVL' }),
    habits: ['systems-hgx', 'managers-hgx', 'power-and-thermal-absent', 'task-monitors-end-204'],
  },
  'cray-ex': {
    product: 'HPE Cray EX',
    manufacturer: 'Cray',
    model: 'ex235a',
    ids: { system: 'Node0', manager: 'BMC', chassis: 'Enclosure' },
    firmware: { bmc: 'nc.1.8.5', bios: 'ex235a.bios-1.8.0' },
    shows: root('1.2.0', undefined),
    habits: ['instruction-set-absent', 'bios-absent'],
  },
  'intel-s2600': {
    product: 'Intel S2600',
    manufacturer: 'Intel Corporation',
    model: 'S2600WFT',
    ids: { system: 'QSBP81900001', manager: 'BMC', chassis: 'RackMount' },
    firmware: { bmc: '2.89', bios: 'SE5C620.86B.02.01.0017' },
    shows: root('1.6.0', undefined),
    habits: ['nics-absent'],
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
