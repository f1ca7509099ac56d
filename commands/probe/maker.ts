/** Maker, model, firmware and generation of a machine, from what its service tells. */
import { bmcFactsOf, identityOf } from '../../drivers/redfish/makers';
import { quirksFor, type Quirks } from '../../drivers/redfish/quirks';
import { member, textOf, type RedfishResource } from '../../wire/redfish';

interface Maker {
  /** Name → what the service tells; null: nothing. */
  readonly machine: Readonly<Record<'manufacturer' | 'model' | 'product' | 'bmc' | 'bios' | 'redfish' | 'generation', string | null>>;
  /** What the driver does differently for it, one sentence each. */
  readonly quirks: readonly string[];
}

/** A switch of the driver → what it means for operators. */
const QUIRKS: { readonly [name in keyof Quirks]-?: string } = {
  wholeBoot: 'Boot mode, persistence and device are sent together, since the service takes no single one.',
  dropsUntagged: 'Each change has an ETag, since the service drops changes without one.',
  alwaysEnabled: 'The persistence is sent with each boot device.',
  forgetsMode: 'The boot mode is set again after each boot device, since the service forgets it.',
  virtualCd: 'A virtual CD is booted by a target of its own, where the service offers it.',
};
export function makerOf(root: unknown, system: RedfishResource | undefined, manager: RedfishResource | undefined): Maker {
  const identity = identityOf({ properties: {} }, root, system?.body);
  const facts = bmcFactsOf(manager?.body, root);
  const machine = {
    manufacturer: textOf(member(system?.body, 'Manufacturer')) ?? identity.vendor ?? null,
    model: identity.model ?? null,
    product: identity.product ?? textOf(member(manager?.body, 'Model')) ?? null,
    bmc: facts.firmware ?? null,
    bios: textOf(member(system?.body, 'BiosVersion')) ?? null,
    redfish: textOf(member(root, 'RedfishVersion')) ?? null,
    generation: facts.generation ?? null,
  };
  return { machine, quirks: Object.keys(quirksFor(identity, facts)).map((name) => QUIRKS[name as keyof Quirks]) };
}
