/** Names with values: how the steps of BIOS interfaces get their settings. */
import { Fault } from '../../model/errors';

/** JSON without structure. */
export type PlainValue = string | number | boolean | null;
export const isPlainValue = (value: unknown): value is PlainValue =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value);

/** The argument of `apply_configuration`: names with values. Throws InvalidParameterValue for another shape. */
export function namedValues(given: unknown): ReadonlyMap<string, PlainValue> {
  const wrong = new Fault('InvalidParameterValue', { message: 'settings must be a list of objects, each with a name and a value' });
  if (!Array.isArray(given)) throw wrong;
  return new Map(
    (given as unknown[]).map((one) => {
      const { name, value } = (one ?? {}) as { readonly name?: unknown; readonly value?: unknown };
      if (typeof name !== 'string' || value === undefined || !isPlainValue(value)) throw wrong;
      return [name, value];
    }),
  );
}
