/** What some vendors' services want otherwise, by the vendor that the node has in its properties (detected, or given by the operator). */
import type { NodeRecord } from '../../model/records';

interface Quirks {
  /** Boot settings are taken only all together: mode, persistence and device. */
  readonly wholeBoot?: true;
  /** The persistence is to be said with each device, changed or not. */
  readonly alwaysEnabled?: true;
  /** Setting a boot device resets the boot mode, which has to be said again. */
  readonly forgetsMode?: true;
  /** Virtual media are a USB drive to it, where it offers that. */
  readonly usbCd?: true;
}
/** Part of the vendor's name in lower case, or the whole of it → what holds for it. */
const QUIRKS: readonly { readonly part?: string; readonly whole?: string; readonly quirks: Quirks }[] = [
  { part: 'american megatrends international', quirks: { wholeBoot: true } },
  { part: 'ami', quirks: { wholeBoot: true } },
  { part: 'asrockrack', quirks: { wholeBoot: true } },
  { part: 'redfish_compatible', quirks: { wholeBoot: true } },
  { whole: 'supermicro', quirks: { alwaysEnabled: true, forgetsMode: true, usbCd: true } },
];

export function quirksOf(node: NodeRecord): Quirks {
  const { vendor } = node.properties;
  if (typeof vendor !== 'string') return {};
  const name = vendor.toLowerCase();
  const rows = QUIRKS.filter(({ part, whole }) => name === whole || (part !== undefined && name.includes(part)));
  return Object.assign({}, ...rows.map(({ quirks }) => quirks)) as Quirks;
}
