/** What is plugged in on USB, hubs apart. */
import type { JsonObject } from '../../model/records';
import type { Tree } from '../system/tree';

/** bDeviceClass (USB 2.0 §9.6.1). */
const HUB = '09';

export function readUsbDevices(tree: Tree): readonly JsonObject[] {
  return tree.list('/sys/bus/usb/devices').flatMap((name) => {
    const base = `/sys/bus/usb/devices/${name}`;
    const [bus, device] = [tree.text(`${base}/busnum`), tree.text(`${base}/devnum`)];
    if (bus === null || device === null || tree.text(`${base}/bDeviceClass`) === HUB) return [];
    return [
      { product: tree.text(`${base}/product`) ?? '', vendor: tree.text(`${base}/manufacturer`) ?? '', handle: `USB:${bus}:${device}` },
    ];
  });
}
