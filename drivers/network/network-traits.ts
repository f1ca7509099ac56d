/** The traits of trait-based networking: [conductor]trait_based_networking_config_file, read at the start and after each change. */
import { parse } from 'yaml';
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';
import { watchedFile } from '../../wire/watched-file';
import { parseFilter, type NetworkTrait, type NetworkTraits, type TraitAction, type TraitFilter } from '../../model/rules/trait-filter';

const ACTIONS: readonly TraitAction['action'][] = ['attach_port', 'attach_portgroup', 'bond_ports', 'group_and_attach_ports'];
export const DEFAULT_TRAIT_NAME = 'CUSTOM_DEFAULT_TBN_TRAIT';
/** Applies if the file has no trait of that name. It attaches the VIF to the first free port. */
export const DEFAULT_TRAIT: NetworkTrait = {
  name: DEFAULT_TRAIT_NAME,
  order: 1,
  actions: [{ action: 'attach_port', filter: parseFilter('port.is_port || port.is_portgroup'), minCount: null, maxCount: 1 }],
};

const MAX_BYTES = 1 << 20;
const KEYS = ['action', 'filter', 'min_count', 'max_count'];
const SMALLEST_GROUP = 2;

function countOf(given: unknown, key: string): number | null {
  if (given === undefined || given === null) return null;
  const count = typeof given === 'string' && /^\s*\d{1,9}\s*$/.test(given) ? Number(given) : given;
  if (typeof count !== 'number' || !Number.isSafeInteger(count)) throw new Error(`${key} must be a whole number`);
  return count;
}
function filterOf(text: unknown): TraitFilter {
  try {
    return parseFilter(String(text));
  } catch (error) {
    throw new Error(`malformed filter expression: '${String(text)}': ${reasonOf(error)}`, { cause: error });
  }
}
function actionOf(given: unknown): TraitAction {
  if (!isObject(given)) throw new Error('an action must be a mapping');
  const unknown = Object.keys(given).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw new Error(`unrecognized key '${unknown}'`);
  const missing = ['action', 'filter'].find((key) => !(key in given));
  if (missing !== undefined) throw new Error(`missing '${missing}' key`);
  const action = ACTIONS.find((name) => name === given['action']);
  if (!action) throw new Error(`unrecognized action '${String(given['action'])}'`);
  const [minCount, maxCount] = [countOf(given['min_count'], 'min_count'), countOf(given['max_count'], 'max_count')];
  if (action === 'group_and_attach_ports') {
    if (minCount === null || minCount < SMALLEST_GROUP)
      throw new Error(`${action} must have a min_count of ${SMALLEST_GROUP} or greater. Got '${minCount}'.`);
    if (maxCount !== null && maxCount < minCount)
      throw new Error(
        `${action} must have a max_count greater or equal to its min_count. min_count is '${minCount}' while max_count is '${maxCount}'.`,
      );
  }
  return { action, filter: filterOf(given['filter']), minCount, maxCount };
}

/** @internal @throws Error with each reason */
export function parseTraits(text: string): readonly NetworkTrait[] {
  const contents: unknown = parse(text);
  if (!isObject(contents)) throw new Error('it must contain a mapping of traits');
  const reasons: string[] = [];
  const traits = Object.entries(contents).map(([name, given]): NetworkTrait => {
    const { actions, order = 1 } = isObject(given) ? given : {};
    if (!Array.isArray(actions)) reasons.push(`'${name}' has no list of actions`);
    if (typeof order !== 'number') reasons.push(`'${name}.order' must be a number`);
    const made = (Array.isArray(actions) ? (actions as readonly unknown[]) : []).flatMap((action) => {
      try {
        return [actionOf(action)];
      } catch (error) {
        reasons.push(`'${name}': ${reasonOf(error)}`);
        return [];
      }
    });
    return { name, order: Number(order), actions: made };
  });
  if (reasons.length > 0) throw new Error(reasons.join('; '));
  return traits;
}

/** @throws Error: the file cannot be used */
export function openNetworkTraits(path: string): NetworkTraits {
  const read = watchedFile(path, MAX_BYTES, parseTraits);
  let traits = read();
  let reported: unknown;
  return {
    current: (log) => {
      try {
        traits = read();
      } catch (error) {
        if (error !== reported)
          log.error('the file of network traits cannot be used: the traits before the change still apply', {
            file: path,
            reason: reasonOf(error),
          });
        reported = error;
      }
      return traits;
    },
  };
}
