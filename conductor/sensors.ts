/** [sensor_data]: what the machines' sensors say, collected from time to time and told to whoever listens. */
import { timestamp } from '../model/clock';
import { newUuid } from '../model/idents';
import type { JsonObject } from '../model/records';
import type { Context } from './context';
import { onNodes } from './on-nodes';
import { withTask } from './task';

/** In the shape of Ironic's notification `hardware.DRIVER.metrics`. */
export interface SensorMessage {
  readonly message_id: string;
  readonly node_uuid: string;
  readonly node_name: string | null;
  readonly instance_uuid: string | null;
  readonly timestamp: string;
  readonly event_type: string;
  /** Sensor kind → sensor → reading. */
  readonly payload: JsonObject;
}

/** Of the kinds that the operator wants. */
function wanted(types: readonly string[], readings: JsonObject): JsonObject {
  const names = new Set(types.map((name) => name.toLowerCase()));
  return names.has('all') ? readings : Object.fromEntries(Object.entries(readings).filter(([kind]) => names.has(kind.toLowerCase())));
}

/** Ends after [sensor_data]wait_timeout, whether or not all were asked: a slow BMC does not delay the next round. */
export async function collectSensors(context: Context, tell: (message: SensorMessage) => void): Promise<void> {
  const { options, clock, random, signal } = context;
  if (!options['sensor_data.send_sensor_data'] || !options['sensor_data.enable_for_nodes']) return;
  const over = new AbortController();
  const ended = new AbortController();
  clock.sleep(options['sensor_data.wait_timeout'] * 1000, AbortSignal.any([signal, ended.signal])).then(
    () => over.abort(),
    () => {},
  );
  try {
    await onNodes(context, {
      purpose: 'sensors',
      filter: {
        where: { maintenance: false, ...(options['sensor_data.enable_for_undeployed_nodes'] ? {} : { provision_state: 'active' }) },
      },
      width: options['sensor_data.workers'],
      signal: AbortSignal.any([signal, over.signal]),
      work: ({ uuid }) =>
        withTask(context, uuid, { purpose: 'getting sensors data', lock: 'shared' }, async (task) => {
          const { node, driver } = task;
          if (!driver.management.sensors) return;
          await driver.management.validate?.(task);
          const payload = wanted(options['sensor_data.data_types'], await driver.management.sensors(task));
          if (Object.keys(payload).length === 0) return;
          tell({
            message_id: newUuid(random),
            node_uuid: uuid,
            node_name: node.name,
            instance_uuid: node.instance_uuid,
            timestamp: timestamp(clock.now()),
            event_type: `hardware.${node.driver}.metrics.update`,
            payload,
          });
        }),
    });
  } finally {
    ended.abort();
  }
}
