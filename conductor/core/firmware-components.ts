/** Saves the firmware versions of a node, as its driver read them, for `GET /v1/nodes/X/firmware`. */
import type { FirmwareComponent } from '../../drivers/interfaces';
import type { Store } from '../../store/store';

/** `initial_version` never changes. If the current version differs from the stored one, the component was flashed. */
export async function putFirmwareComponents(
  { firmwareComponents }: Store,
  nodeUuid: string,
  components: readonly FirmwareComponent[],
): Promise<void> {
  const known = new Map((await firmwareComponents.ofNode(nodeUuid)).map((one) => [one.component, one]));
  const fields = ['current_version', 'vendor', 'model', 'serial_number'] as const;
  const changed = components.filter((one) => {
    const before = known.get(one.component);
    return before === undefined || fields.some((field) => before[field] !== one[field]);
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
