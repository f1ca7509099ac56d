/** /v1/chassis. */
import type { ChassisRecord } from '../../model/records';
import { linksTo } from '../resource/links';
import { handlersOf, listOf, type Resource } from '../resource/resource';
import type { Handlers } from '../resource/handler';

const CHASSIS: Resource<ChassisRecord> = {
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
  create: (record, { store }) => store.chassis.create(record),
  update: ({ uuid }, changes, { store }) => store.chassis.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.chassis.remove(uuid),
};

export const chassisHandlers: Handlers = {
  ...handlersOf(CHASSIS, 'Chassis'),
  listChassisDetail: (request, context) => listOf(CHASSIS, request, context, { detail: true }),
};
