/** A node on the small Redfish service of tests/wire, for tests of its interfaces. */
import { redfishManagement } from '../../drivers/redfish/steps/management';
import { redfishPower } from '../../drivers/redfish/power';
import type { JsonObject, NodeRecord } from '../../model/records';
import { createRedfishPool, type RedfishPool } from '../../wire/redfish';
import { SYSTEM, redfishService, type RedfishService } from '../wire/redfish/service';
import { bmcTask } from './bmc-task';

export interface RedfishBench {
  /** Of the running test. */
  readonly service: () => RedfishService;
  readonly pool: () => RedfishPool;
  /** The resource at a path, which a test may change. */
  readonly resource: (path?: string) => Record<string, Record<string, unknown>>;
  /** Bodies of the requests that change something. */
  readonly changes: () => readonly unknown[];
  readonly bench: (given?: {
    readonly info?: JsonObject;
    readonly node?: Partial<NodeRecord>;
    readonly options?: object;
  }) => ReturnType<typeof bmcTask>;
}
/** A service and a pool for each test of the file. */
export function redfishBench(): RedfishBench {
  let service: RedfishService;
  let pool: RedfishPool;
  beforeEach(async () => {
    service = await redfishService();
    pool = createRedfishPool();
  });
  afterEach(async () => {
    await pool.close();
    await service.close();
  });
  return {
    service: () => service,
    pool: () => pool,
    resource: (path = SYSTEM) => service.resources[path] as Record<string, Record<string, unknown>>,
    changes: () => service.asked.filter(({ method }) => method !== 'GET').map(({ body }) => body),
    bench: (given = {}) =>
      bmcTask({
        node: { driver: 'redfish', driver_info: { redfish_address: service.url, redfish_system_id: SYSTEM, ...given.info }, ...given.node },
        driver: { power: redfishPower, management: redfishManagement },
        options: given.options ?? {},
        connections: { redfish: pool },
      }),
  };
}
