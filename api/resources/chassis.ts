/** /v1/chassis: which nodes stand in one box. */
import type { ChassisRecord } from '../../model/records';
import { linksTo } from '../resource/links';
import { createOf, listOf, removeOf, showOf, updateOf, type Resource } from '../resource/resource';
import type { Handlers } from '../resource/routes';

const CHASSIS: Resource<ChassisRecord> = {
  schema: 'Chassis',
  path: 'chassis',
  list: 'chassis',
  said: 'chassis',
  ident: 'chassis_uuid',
  policy: 'chassis',
  brief: ['uuid', 'description'],
  unsortable: ['extra'],
  computed: [],
  strict: true,
  table: ({ store }) => store.chassis,
  // A list of links within a list: clients know it so.
  values: { nodes: ({ uuid }, { base }) => [linksTo(base, `chassis/${uuid}/nodes`)] },
  create: (record, { store }) => store.chassis.create(record),
  update: ({ uuid }, changes, { store }) => store.chassis.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.chassis.remove(uuid),
};

export const chassisHandlers: Handlers = {
  listChassis: (request, rooms) => listOf(CHASSIS, request, rooms),
  listChassisDetail: (request, rooms) => listOf(CHASSIS, request, rooms, { detail: true }),
  createChassis: (request, rooms) => createOf(CHASSIS, request, rooms),
  showChassis: (request, rooms) => showOf(CHASSIS, request, rooms),
  updateChassis: (request, rooms) => updateOf(CHASSIS, request, rooms),
  deleteChassis: (request, rooms) => removeOf(CHASSIS, request, rooms),
};
