/** The metrics of machines' sensors. Metrics and labels have the names of ironic-prometheus-exporter. */
import type { Readings, SensorHealth } from '../../drivers/common/sensor-readings';
import type { Sample } from '../../model/metrics';
import type { NodeRecord } from '../../model/records';

type NodeIdentity = Pick<NodeRecord, 'uuid' | 'name' | 'instance_uuid'>;
const nodeLabels = ({ uuid, name, instance_uuid: instance }: NodeIdentity) =>
  ({ node_uuid: uuid, node_name: name ?? '', instance_uuid: instance ?? '' }) as const;

export const readingSamples = (node: NodeIdentity, { readings }: Readings): readonly Sample<'baremetal_sensor_reading'>[] =>
  readings.map(({ kind, sensor, entity, unit, value }) => [
    { ...nodeLabels(node), kind, entity_id: entity, sensor_id: sensor, unit },
    value,
  ]);
export const healthSamples = (
  kind: SensorHealth['kind'],
  node: NodeIdentity,
  { health }: Readings,
): readonly Sample<`baremetal_${SensorHealth['kind']}_status`>[] =>
  health
    .filter((candidate) => candidate.kind === kind)
    .map(({ sensor, entity, bad }) => [{ ...nodeLabels(node), entity_id: entity, sensor_id: sensor }, bad ? 1 : 0]);
export const timeSample = (node: NodeIdentity, at: number): Sample<'baremetal_last_payload_timestamp_seconds'> => [
  nodeLabels(node),
  at / 1000,
];
