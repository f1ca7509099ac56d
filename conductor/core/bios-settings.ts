/** The BIOS settings of a node as a driver found or made them. */
import type { BiosSetting } from '../../drivers/interfaces';
import type { Store } from '../../store/store';

/** Others than these are forgotten; one whose value stays is not touched. */
export async function replaceBiosSettings({ biosSettings }: Store, nodeUuid: string, settings: readonly BiosSetting[]): Promise<void> {
  const known = await biosSettings.ofNode(nodeUuid);
  const values = new Map(known.map(({ name, value }) => [name, value]));
  const changed = settings.filter(({ name, value }) => values.get(name) !== value);
  const gone = known.map(({ name }) => name).filter((name) => !settings.some((one) => one.name === name));
  if (changed.length > 0) await biosSettings.put(nodeUuid, changed);
  if (gone.length > 0) await biosSettings.remove(nodeUuid, gone);
}
