/** The settings of a machine's BIOS, RAID and firmware that can be changed, and the steps that change them. Pure. */
import type { JsonObject } from '../../model/json';

/** A BIOS setting in the form of /v1/nodes/X/bios?detail=true. */
export interface BiosSetting {
  readonly name: string;
  readonly value: string | null;
  readonly attribute_type?: string | null;
  readonly allowable_values?: readonly unknown[] | null;
  readonly lower_bound?: number | null;
  readonly upper_bound?: number | null;
  readonly min_length?: number | null;
  readonly max_length?: number | null;
  readonly read_only?: boolean | null;
  readonly reset_required?: boolean | null;
}
export interface Step {
  readonly interface: string;
  readonly step: string;
  readonly args?: JsonObject;
}
/** The values to choose from. Undefined: the user types the value as text. */
export function choicesOf({ attribute_type: type, allowable_values: allowed, value }: BiosSetting): readonly string[] | undefined {
  const known = (allowed ?? []).filter((candidate): candidate is string => typeof candidate === 'string');
  const choices = known.length > 0 ? known : type === 'Boolean' ? (/^[TF]/.test(value ?? '') ? ['True', 'False'] : ['true', 'false']) : [];
  if (choices.length === 0) return undefined;
  return value === null || choices.includes(value) ? choices : [value, ...choices];
}
const isSet = (bound: number | null | undefined): bound is number => bound !== null && bound !== undefined;
/** The bounds of the setting in words; empty: no bounds are known. */
export function boundsText(setting: BiosSetting): string {
  const { lower_bound: low, upper_bound: high, min_length: least, max_length: most } = setting;
  if (isSet(low) || isSet(high)) return `${low ?? '…'} to ${high ?? '…'}`;
  if (isSet(least) || isSet(most)) return `${least ?? 0} to ${most ?? '…'} characters`;
  return '';
}
/** The mistake in a new value; undefined: the value is valid. */
export function biosMistake(setting: BiosSetting, text: string): string | undefined {
  const { attribute_type: type, lower_bound: low, upper_bound: high, min_length: least, max_length: most } = setting;
  const choices = choicesOf(setting);
  if (choices) return choices.includes(text) ? undefined : `must be one of ${choices.join(', ')}`;
  if (type === 'Integer') {
    if (!/^-?\d{1,15}$/.test(text)) return 'must be a whole number';
    if (isSet(low) && Number(text) < low) return `is less than ${low}`;
    if (isSet(high) && Number(text) > high) return `is more than ${high}`;
    return undefined;
  }
  if (isSet(least) && text.length < least) return `has fewer than ${least} characters`;
  if (isSet(most) && text.length > most) return `has more than ${most} characters`;
  return undefined;
}
/** The settings whose new value differs from the present one. @param texts name → new value */
export function changedSettings(
  settings: readonly BiosSetting[],
  texts: Readonly<Record<string, string>>,
): readonly { readonly name: string; readonly value: string }[] {
  return settings.flatMap(({ name, value }) => {
    const text = texts[name];
    return text === undefined || text === (value ?? '') ? [] : [{ name, value: text }];
  });
}
export const biosSteps = (settings: readonly { readonly name: string; readonly value: string }[]): readonly Step[] => [
  { interface: 'bios', step: 'apply_configuration', args: { settings } },
];
export const firmwareSteps = (updates: Readonly<Record<string, string>>): readonly Step[] => [
  { interface: 'firmware', step: 'update', args: { settings: Object.entries(updates).map(([component, url]) => ({ component, url })) } },
];
/** Delete the present RAID configuration, then create the one in the node's target_raid_config. */
export const RAID_STEPS: readonly Step[] = [
  { interface: 'raid', step: 'delete_configuration' },
  { interface: 'raid', step: 'create_configuration' },
];

/** The verb that runs the steps of this kind in a provision state. Undefined: they cannot run in the state. */
export function verbFor(state: string, kind: 'bios' | 'raid' | 'firmware'): 'clean' | 'service' | undefined {
  if (state === 'manageable' || state === 'clean failed') return 'clean';
  return kind !== 'raid' && (state === 'active' || state === 'service failed') ? 'service' : undefined;
}
export const CHANGE_CONDITIONS: Readonly<Record<'bios' | 'raid' | 'firmware', string>> = {
  bios: 'Settings can be changed while the node is manageable (cleaning) or active (servicing).',
  firmware: 'Firmware can be updated while the node is manageable (cleaning) or active (servicing).',
  raid: 'Disks can be configured while the node is manageable (cleaning). Their data is lost.',
};
/** The logical disks of raid_config or target_raid_config, as rows of a table. */
export const logicalDisks = (config: unknown): readonly JsonObject[] => {
  const { logical_disks: disks } = (config ?? {}) as JsonObject;
  return Array.isArray(disks) ? disks.filter((disk): disk is JsonObject => typeof disk === 'object' && disk !== null) : [];
};
