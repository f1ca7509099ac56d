/** /v1/chassis. */
import { invalid } from '../../model/errors';
import type { ChassisRecord } from '../../model/records';
import { linksTo } from '../pipeline/present';
import { createOf, listOf, removeOf, showOf, updateOf, type Resource } from '../pipeline/resource';
import type { SomeHandlers } from '../pipeline/handler';

const CHASSIS: Resource<ChassisRecord, 'Chassis'> = {
  schema: 'Chassis',
  path: 'chassis',
  list: 'chassis',
  bodyLabel: 'chassis',
  ident: 'chassis_uuid',
  policy: 'chassis',
  brief: ['uuid', 'description'],
  unsortable: ['extra'],
  computed: [],
  strict: true,
  table: ({ store }) => store.chassis,
  // Ironic nests this list of links in a list.
  values: { nodes: ({ uuid }, { base }) => [linksTo(base, `chassis/${uuid}/nodes`)] },
  check: (values) => values,
  create: (record, { store }) => store.chassis.create(record),
  checkPatched(values, { record: { uuid } }) {
    if (values.uuid !== uuid) throw invalid('Cannot overwrite UUID for an existing Chassis.');
    return values;
  },
  update: ({ uuid }, changes, { store }) => store.chassis.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.chassis.remove(uuid),
};

export const chassisHandlers = {
  listChassis: (request, context) => listOf(CHASSIS, request, context),
  listChassisDetail: (request, context) => listOf(CHASSIS, request, context, { detail: true }),
  createChassis: (request, context) => createOf(CHASSIS, request, context),
  showChassis: (request, context) => showOf(CHASSIS, request, context),
  updateChassis: (request, context) => updateOf(CHASSIS, request, context),
  deleteChassis: (request, context) => removeOf(CHASSIS, request, context),
} satisfies SomeHandlers;
