/** Deviations of some vendors' services, by the vendor in the node's properties (detected, or set by the operator). */
import type { NodeRecord } from '../../model/records';

interface Quirks {
  /** The service accepts boot settings only together: mode, persistence and device. */
  readonly wholeBoot?: true;
  /** The persistence must be sent with each device, changed or not. */
  readonly alwaysEnabled?: true;
  /** Setting a boot device resets the boot mode, which must be set again. */
  readonly forgetsMode?: true;
  /** The machine boots a virtual CD with the target UsbCd, if the service offers it. */
  readonly usbCd?: true;
}
/** Part of the vendor's name in lower case, or the whole name → its deviations. */
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
