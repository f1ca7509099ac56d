/** Saves the firmware versions of a node, as its driver read them, for `GET /v1/nodes/X/firmware`. */
import type { FirmwareComponent } from '../../drivers/interfaces';
import type { Store } from '../../store/store';

/** `initial_version` never changes. If the current version differs from the stored one, the component was flashed. */
export async function putFirmwareComponents(
  { firmwareComponents }: Store,
  nodeUuid: string,
  components: readonly FirmwareComponent[],
): Promise<void> {
  const known = new Map((await firmwareComponents.ofNode(nodeUuid)).map((item) => [item.component, item]));
  const fields = ['current_version', 'vendor', 'model', 'serial_number'] as const;
  const changed = components.filter((component) => {
    const before = known.get(component.component);
    return before === undefined || fields.some((field) => before[field] !== component[field]);
  });
  await firmwareComponents.put(
    nodeUuid,
    changed.map((item) => {
      const {
        initial_version: initial = item.current_version,
        current_version: now,
        last_version_flashed: flashed = null,
      } = known.get(item.component) ?? {};
      const isNew = now !== undefined && now !== item.current_version;
      return { ...item, initial_version: initial, last_version_flashed: isNew ? item.current_version : flashed };
    }),
  );
}
