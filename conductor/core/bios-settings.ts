/** Saves the BIOS settings of a node as a driver read or set them. */
import type { BiosSetting } from '../../drivers/interfaces';
import type { Store } from '../../store/store';

/** Removes the stored settings that `settings` lacks. A setting with the same value is not written. */
export async function replaceBiosSettings({ biosSettings }: Store, nodeUuid: string, settings: readonly BiosSetting[]): Promise<void> {
  const known = await biosSettings.ofNode(nodeUuid);
  const values = new Map(known.map(({ name, value }) => [name, value]));
  const changed = settings.filter(({ name, value }) => values.get(name) !== value);
  const gone = known.map(({ name }) => name).filter((name) => !settings.some((setting) => setting.name === name));
  if (changed.length > 0) await biosSettings.put(nodeUuid, changed);
  if (gone.length > 0) await biosSettings.remove(nodeUuid, gone);
}
