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
/** The vendor's name → its deviations. */
const QUIRKS: readonly { readonly vendor: RegExp; readonly quirks: Quirks }[] = [
  { vendor: /\b(?:american megatrends international|ami|asrockrack|redfish_compatible)\b/i, quirks: { wholeBoot: true } },
  { vendor: /^super ?micro\b/i, quirks: { alwaysEnabled: true, forgetsMode: true, usbCd: true } },
];

export function quirksOf(node: NodeRecord): Quirks {
  const { vendor } = node.properties;
  const rows = typeof vendor === 'string' ? QUIRKS.filter((row) => row.vendor.test(vendor)) : [];
  return Object.assign({}, ...rows.map(({ quirks }) => quirks)) as Quirks;
}
