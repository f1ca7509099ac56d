/** The firmware of a node as its driver found it, kept for `GET /v1/nodes/X/firmware`. */
import type { FirmwareComponent } from '../../drivers/interfaces';
import type { Store } from '../../store/store';

/** The first version of a component stays on record; one that is another than before was flashed. */
export async function putFirmwareComponents(
  { firmwareComponents }: Store,
  nodeUuid: string,
  components: readonly FirmwareComponent[],
): Promise<void> {
  const known = new Map((await firmwareComponents.ofNode(nodeUuid)).map((one) => [one.component, one]));
  const told = ['current_version', 'vendor', 'model', 'serial_number'] as const;
  const changed = components.filter((one) => {
    const before = known.get(one.component);
    return before === undefined || told.some((field) => before[field] !== one[field]);
  });
  await firmwareComponents.put(
    nodeUuid,
    changed.map((one) => {
      const {
        initial_version: initial = one.current_version,
        current_version: now,
        last_version_flashed: flashed = null,
      } = known.get(one.component) ?? {};
      const isNew = now !== undefined && now !== one.current_version;
      return { ...one, initial_version: initial, last_version_flashed: isNew ? one.current_version : flashed };
    }),
  );
}
