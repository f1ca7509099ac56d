/** Maker, model, firmware and generation of a machine, from what its service tells. */
import type { NodeRecord } from '../../model/records';
import { quirksOf } from '../../drivers/redfish/quirks';
import { member, textOf, type RedfishResource } from '../../wire/redfish';
import { isObject } from '../../model/json';

interface Maker {
  /** Name → what the service tells; null: nothing. */
  readonly machine: Readonly<Record<'manufacturer' | 'model' | 'product' | 'bmc' | 'bios' | 'redfish' | 'generation', string | null>>;
  /** What the driver does differently for it, one sentence each. */
  readonly quirks: readonly string[];
}

/** Dell: the manager's model → the generation of its iDRAC. Later models are 17G. */
const IDRACS: readonly { readonly model: RegExp; readonly generation: string }[] = [
  { model: /^1[23]G\b/i, generation: 'iDRAC 7 or 8' },
  { model: /^1[456]G\b/i, generation: 'iDRAC 9' },
  { model: /^(?:1[7-9]|2\d)G\b/i, generation: 'iDRAC 10' },
];
const GENERATIONS: readonly ((manager: unknown, root: unknown) => string | undefined)[] = [
  (manager) => IDRACS.find(({ model }) => model.test(textOf(member(manager, 'Model')) ?? ''))?.generation,
  (manager) =>
    /^iLO \d+/.exec(textOf(member(manager, 'Model')) ?? '')?.[0] ?? /^iLO \d+/.exec(textOf(member(manager, 'FirmwareVersion')) ?? '')?.[0],
  (_manager, root) => textOf(member(root, 'Oem', 'Hpe', 'Moniker', 'PRODGEN')),
  (manager) => /\bXCC\d?\b/.exec(textOf(member(manager, 'Model')) ?? '')?.[0],
  (manager) => /\biRMC\s?S\d\b/.exec(textOf(member(manager, 'Model')) ?? '')?.[0],
];
/** The key of a root's Oem that names the maker. */
const oemKey = (root: unknown): string | undefined => {
  const oem = member(root, 'Oem');
  return isObject(oem) ? Object.keys(oem).find((key) => /^[A-Za-z]\w{1,40}$/.test(key)) : undefined;
};

/** A switch of the driver → what it means for operators. */
const QUIRKS: Readonly<Record<string, string>> = {
  wholeBoot: 'Boot mode, persistence and device are sent together, since the service takes no single one.',
  alwaysEnabled: 'The persistence is sent with each boot device.',
  forgetsMode: 'The boot mode is set again after each boot device, since the service forgets it.',
  usbCd: 'A virtual CD is booted as UsbCd where the service offers it.',
};
/** The driver reads the vendor in the node's properties, which inspection fills. */
const quirkTexts = (vendor: string | null): readonly string[] =>
  Object.keys(quirksOf({ properties: { vendor: vendor ?? '' } } as unknown as NodeRecord)).map((name) => QUIRKS[name] ?? name);

export function makerOf(root: unknown, system: RedfishResource | undefined, manager: RedfishResource | undefined): Maker {
  const [own, bmc] = [system?.body, manager?.body];
  const manufacturer = textOf(member(own, 'Manufacturer')) ?? textOf(member(root, 'Vendor')) ?? oemKey(root) ?? null;
  const machine = {
    manufacturer,
    model: textOf(member(own, 'Model')) ?? null,
    product: textOf(member(root, 'Product')) ?? textOf(member(bmc, 'Model')) ?? null,
    bmc: textOf(member(bmc, 'FirmwareVersion')) ?? null,
    bios: textOf(member(own, 'BiosVersion')) ?? null,
    redfish: textOf(member(root, 'RedfishVersion')) ?? null,
    generation: GENERATIONS.map((generation) => generation(bmc, root)).find((found) => found !== undefined) ?? null,
  };
  return { machine, quirks: quirkTexts(manufacturer) };
}
