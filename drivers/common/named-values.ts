/** Names with values: the settings of BIOS steps. */
import { Fault } from '../../model/errors';

/** A JSON value that is neither an object nor a list. */
export type PlainValue = string | number | boolean | null;
export const isPlainValue = (value: unknown): value is PlainValue =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value);

/** The argument of `apply_configuration`. Throws InvalidParameterValue for another shape. */
export function namedValues(settings: unknown): ReadonlyMap<string, PlainValue> {
  const wrong = new Fault('InvalidParameterValue', { message: 'settings must be a list of objects, each with a name and a value' });
  if (!Array.isArray(settings)) throw wrong;
  return new Map(
    (settings as unknown[]).map((setting) => {
      const { name, value } = (setting ?? {}) as { readonly name?: unknown; readonly value?: unknown };
      if (typeof name !== 'string' || value === undefined || !isPlainValue(value)) throw wrong;
      return [name, value];
    }),
  );
}
