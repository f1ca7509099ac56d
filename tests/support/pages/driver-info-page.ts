/** docs/reference/driver-info.md: the keys of driver_info that each hardware type with a BMC knows, by the tables that validation reads. */
import { entry } from '../../../config/markdown';
import { HARDWARE_TYPES, INTERFACES } from '../../../drivers/index';
import type { Interface, Property } from '../../../drivers/interfaces';
import { INTERFACE_KINDS } from '../../../model/records';

const TYPES = {
  redfish: {
    title: 'Redfish (`redfish`)',
    example: [
      'redfish_address=https://192.0.2.10',
      'redfish_username=admin',
      'redfish_password=PASSWORD',
      'redfish_verify_ca=/etc/ssl/bmc-ca.pem',
    ],
    notes: [
      'Dell machines with the hardware type `idrac` have the same keys, and `vmedia_transport_protocol` for `idrac-redfish-virtual-media`.',
      '',
    ],
  },
  ipmi: {
    title: 'IPMI (`ipmi`, `intel-ipmi`)',
    example: ['ipmi_address=192.0.2.10', 'ipmi_username=admin', 'ipmi_password=PASSWORD', 'ipmi_cipher_suite=17'],
    notes: [
      'No key selects workarounds (`-o` of ipmitool, `-W` of FreeIPMI), as in Ironic: the native client recognizes such BMCs by itself.',
      '[hardware.md](hardware.md#peculiarities-of-bmcs) lists their peculiarities.',
      '',
      '| workaround of FreeIPMI | what the native client does instead, always |',
      '|---|---|',
      '| `idzero` | with IPMI 1.5, accepts the session ID 0 in packets with a valid authentication code |',
      '| `unexpectedauth` | with IPMI 1.5, accepts packets with a valid authentication code where the BMC said that none is needed |',
      '| `forcepermsg` | with IPMI 1.5, sends authentication codes if the BMC ignores packets without them, although it said that none is needed |',
      '| `endianseq` | accepts such session sequence numbers in signed packets |',
      '',
    ],
  },
} as const;
type Type = keyof typeof TYPES;

interface Key extends Property {
  /** Kinds of interface, with the names of those that read it. */
  readonly readers: ReadonlyMap<string, readonly string[]>;
}
/** Each key with its readers; required keys first, then in the order of the tables. */
function keysOf(type: Type): readonly (readonly [string, Key])[] {
  const found = new Map<string, Key>();
  for (const kind of INTERFACE_KINDS)
    for (const name of HARDWARE_TYPES[type]![kind].filter((candidate) => Object.hasOwn(INTERFACES[kind], candidate))) {
      const { properties = {} } = INTERFACES[kind][name] as Interface;
      for (const [key, property] of Object.entries(properties)) {
        const { readers } = found.get(key) ?? { readers: new Map<string, readonly string[]>() };
        found.set(key, { ...property, readers: new Map([...readers, [kind, [...(readers.get(kind) ?? []), name]]]) });
      }
    }
  return [...found].sort(([, a], [, b]) => Number(b.required ?? false) - Number(a.required ?? false));
}

/** The kinds of interface, those whose readers have the same names together. */
function readBy({ readers }: Key): string {
  const kinds = [...readers].map(([kind, names]) => [kind, names.map((name) => `\`${name}\``).join(', ')] as const);
  const together = [...new Set(kinds.map(([, names]) => names))].map((names) => {
    const same = kinds.filter(([, others]) => others === names).map(([kind]) => kind);
    return `${same.join(', ')} (${names})`;
  });
  return `read by ${together.join(', ')}`;
}
const facts = (key: Key): string =>
  [...(key.required ? ['required'] : []), ...(key.secret ? ['shown as `******`'] : []), readBy(key)].join('; ');
const section = (type: Type): readonly string[] => [
  `## ${TYPES[type].title}`,
  '',
  '```sh',
  `baremetal node create --driver ${type} \\`,
  ...TYPES[type].example.map((word, index, all) => `  --driver-info ${word}${index < all.length - 1 ? ' \\' : ''}`),
  '```',
  '',
  ...keysOf(type).map(([name, key]) => entry(`**\`${name}\`**: ${facts(key)}`, key.description.replaceAll('``', '`'))),
  '',
  ...TYPES[type].notes,
];

export const driverInfoPage = (): string =>
  [
    '# The keys of driver_info',
    '',
    'This page is for operators who enrol nodes: where the BMC of a node is, how to log in to it, and what its drivers boot.',
    'It is generated from the tables that the validation reads (`UPDATE_DOCS=1 npx jest tests/drivers/driver-info-page` writes it); do not edit it.',
    '`GET /v1/drivers/NAME/properties` returns the same keys, for the default interfaces.',
    '',
    'The server refuses to manage, power or deploy a node with a missing required key or an invalid value.',
    '`baremetal node validate NODE` names such keys for each interface.',
    'The server never shows passwords and keys again, not even in errors and logs.',
    'It stores keys that these lists do not name, but does not read them.',
    'The agent reads `wipe_special_filesystems` and `guard_special_filesystems` ([shared storage](../inspection.md#shared-storage)).',
    'Most descriptions are those of Ironic.',
    '',
    ...(Object.keys(TYPES) as Type[]).flatMap(section),
    '`bloomery why NODE` checks the BMC and shows its response ([troubleshooting.md](../troubleshooting.md)).',
    '[hardware.md](hardware.md) lists what works with which BMC.',
    '',
  ].join('\n');
