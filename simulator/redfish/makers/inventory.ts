/** Habits with lists, links and the parts of a machine. */
import type { Habit } from '../protocol/habits';
import { link, type ResourceBody } from '../protocol/routes';
import { refuse } from '../protocol/messages';
import { everyObject, instead, shows, showsAll, together, without } from './change';

const listChanged = (change: (members: readonly ResourceBody[]) => unknown) => (body: ResourceBody) =>
  Array.isArray(body['Members']) ? { ...body, Members: change(body['Members'] as readonly ResourceBody[]) } : body;

export const INVENTORY_HABITS = {
  'members-as-strings': {
    about: 'The members of collections are texts, and no objects.',
    source: 'bb-Ricardo/check_redfish cr_module/classes/redfish.py (Inspur)',
    around: showsAll(listChanged((members) => members.map((member) => member['@odata.id']))),
  },
  'members-absent-if-empty': {
    about: 'A collection without members has no Members.',
    source: 'xcat2/confluent aiohmi/redfish/oem/ami/megarac.py',
    around: showsAll((body) => (Array.isArray(body['Members']) && body['Members'].length === 0 ? without(body, 'Members') : body)),
  },
  'members-null-if-empty': {
    about: 'The Members of a collection without members are null.',
    source: 'DMTF/Redfish-Tacklebox',
    around: showsAll((body) => (Array.isArray(body['Members']) && body['Members'].length === 0 ? { ...body, Members: null } : body)),
  },
  'links-absolute': {
    about: 'Links are URLs with scheme and host.',
    source: 'DMTF/Redfish-Tacklebox',
    around: showsAll(
      (body, _, { headers }) =>
        everyObject(body, (one) => {
          const path = one['@odata.id'];
          return typeof path === 'string' && path.startsWith('/') ? { ...one, '@odata.id': `http://${headers.host ?? 'bmc'}${path}` } : one;
        }) as ResourceBody,
    ),
  },
  'serial-placeholder': {
    about: 'The serial number of the system is a placeholder of its maker.',
    source: 'bb-Ricardo/check_redfish; DMTF/Redfish-Tacklebox',
    around: shows('ComputerSystem', (body) => ({ ...body, SerialNumber: 'To be filled by O.E.M.' })),
  },
  'serial-with-spaces': {
    about: 'The serial number of the system ends in spaces.',
    source: 'OpenCHAMI/smd pkg/redfish/redfish-hpe.go',
    around: shows('ComputerSystem', (body) => ({ ...body, SerialNumber: `${String(body['SerialNumber'])}   ` })),
  },
  'serial-is-sku': {
    about: 'The serial number of the machine is its SKU; SerialNumber is that of the board.',
    source: 'openstack/ironic drivers/modules/drac/inspect.py',
    around: shows('ComputerSystem', (body) => ({
      ...body,
      SKU: body['SerialNumber'],
      SerialNumber: `CN${String(body['SerialNumber'])}00`,
    })),
  },
  'cpu-first-absent': {
    about: 'The first member of the processors is an empty socket.',
    source: 'OpenCHAMI/smd pkg/redfish; stmcginnis/gofish (Cisco C225 M6)',
    around: shows('ProcessorCollection', (body, { system }) => ({
      ...listChanged((members) => [link(`/Systems/${system.name}/Processors/CPU0`), ...members])(body),
      'Members@odata.count': (body['Members@odata.count'] as number) + 1,
    })),
    routes: [
      {
        path: '/Systems/{system}/Processors/CPU0',
        get: ({ path }) => ({
          ...link(path),
          '@odata.type': '#Processor.v1_10_0.Processor',
          Id: 'CPU0',
          Name: 'CPU0',
          ProcessorType: 'CPU',
          Status: { State: 'Absent' },
        }),
      },
    ],
  },
  'instruction-set-absent': {
    about: 'A processor tells no architecture.',
    source: 'OpenCHAMI/smd pkg/redfish (Cray EX)',
    around: shows('Processor', (body) => without(body, 'InstructionSet', 'ProcessorArchitecture')),
  },
  'nics-absent': {
    about: 'The system has no EthernetInterfaces.',
    source: 'OpenCHAMI/smd pkg/redfish (Intel S2600)',
    around: together(
      shows('ComputerSystem', (body) => without(body, 'EthernetInterfaces')),
      instead('GET', /\/Systems\/[^/]+\/EthernetInterfaces(?:\/|$)/, (_, __, { path }) => refuse('ResourceMissingAtURI', path)),
    ),
  },
  'manager-in-links-managers': {
    about: 'The system names its manager in Links.Managers, and not in ManagedBy.',
    source: 'stmcginnis/gofish pull request 177; Huawei/Server_Management_Plugin_Ansible redfish_base.py',
    around: together(
      shows('ComputerSystem', (body) => {
        const { ManagedBy, ...links } = (body['Links'] ?? {}) as ResourceBody;
        return { ...body, Links: { ...without(links, 'ManagedBy@odata.count'), Managers: ManagedBy } };
      }),
    ),
  },
} as const satisfies Readonly<Record<string, Habit>>;
