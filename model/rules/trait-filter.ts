/** Traits of trait-based networking, and their filters: which ports and portgroups an action applies to. Ironic's language. */
import { Fault } from '../errors';
import type { Log } from '../log';
import type { PortgroupRecord, PortRecord } from '../records';

type FilteredPortOrPortgroup =
  | { readonly kind: 'port'; readonly record: PortRecord }
  | { readonly kind: 'portgroup'; readonly record: PortgroupRecord };
export interface FilteredNetwork {
  readonly name: string | null;
  readonly tags: readonly string[];
}
/** @param network null: any network, so that every comparison with its variables is true. @throws Fault for an impossible comparison */
export type TraitFilter = (carrier: FilteredPortOrPortgroup, network: FilteredNetwork | null) => boolean;

export interface TraitAction {
  readonly action: 'attach_port' | 'attach_portgroup' | 'bond_ports' | 'group_and_attach_ports';
  readonly filter: TraitFilter;
  readonly minCount: number | null;
  readonly maxCount: number | null;
}
export interface NetworkTrait {
  readonly name: string;
  readonly order: number;
  readonly actions: readonly TraitAction[];
}
export interface NetworkTraits {
  /** The traits in the present file. If the file cannot be used, this logs an error and returns the last valid traits. */
  current(log: Log): readonly NetworkTrait[];
}

type VariableValue = string | boolean | readonly string[] | null;
const attribute =
  (name: 'address' | 'category' | 'physical_network' | 'vendor') =>
  ({ record }: FilteredPortOrPortgroup): string | null =>
    (record as Partial<PortRecord>)[name] ?? null;
const VARIABLES: Readonly<Record<string, (carrier: FilteredPortOrPortgroup, network: FilteredNetwork | null) => VariableValue>> = {
  'port.address': attribute('address'),
  'port.category': attribute('category'),
  'port.physical_network': attribute('physical_network'),
  'port.vendor': attribute('vendor'),
  'port.is_port': ({ kind }) => kind === 'port',
  'port.is_portgroup': ({ kind }) => kind === 'portgroup',
  // Without a network, nothing asks for these.
  'network.name': (_, network) => network!.name,
  'network.tags': (_, network) => network!.tags,
};
/** These need no comparison. As in Ironic, a comparison is accepted too: `==` is always false, `!=` is always true, others throw. */
const FUNCTIONS: readonly string[] = ['port.is_port', 'port.is_portgroup'];

type Comparator = '==' | '!=' | '>=' | '>' | '<=' | '<' | '=~';
const COMPARISONS: Readonly<Record<Comparator, (value: string, literal: string) => boolean>> = {
  '==': (value, literal) => value === literal,
  '!=': (value, literal) => value !== literal,
  '>=': (value, literal) => value >= literal,
  '>': (value, literal) => value > literal,
  '<=': (value, literal) => value <= literal,
  '<': (value, literal) => value < literal,
  '=~': (value, literal) => value.startsWith(literal),
};
/** A list has the literal, does not have it, or has a member that begins with it. */
const LIST_COMPARISONS: Readonly<Partial<Record<Comparator, (values: readonly string[], literal: string) => boolean>>> = {
  '==': (values, literal) => values.includes(literal),
  '!=': (values, literal) => !values.includes(literal),
  '=~': (values, literal) => values.some((value) => value.startsWith(literal)),
};
function compare(name: string, value: VariableValue, comparator: Comparator, literal: string): boolean {
  if (value === null) throw new Fault('TBNAttributeRetrievalException', { attr_name: name.slice(name.indexOf('.') + 1) });
  if (typeof value === 'string') return COMPARISONS[comparator](value, literal);
  if (typeof value !== 'boolean') {
    const comparison = LIST_COMPARISONS[comparator];
    if (comparison) return comparison(value, literal);
    throw new Fault('TraitBasedNetworkingException', {
      message: `Comparator '${comparator}' can only be used with variables of type string, not a collection`,
    });
  }
  if (comparator === '==' || comparator === '!=') return comparator === '!=';
  throw new Fault('TraitBasedNetworkingException', { message: 'Prefix match can only be used with variables of type string' });
}

const TOKEN = /[ \t\f\r\n]*(?:(&&|\|\||[()]|[=!><]=|=~|[><])|'([\w.-]*)'|([a-z]+\.[a-z_]+))/y;
/** Maximum nesting of parentheses, which bounds the recursion. */
const MAX_PARENTHESES = 100;
interface Token {
  readonly sign?: string | undefined;
  readonly literal?: string | undefined;
  readonly name?: string | undefined;
}
function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  const trimmed = text.trimEnd();
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < trimmed.length;) {
    const at = TOKEN.lastIndex;
    const found = TOKEN.exec(trimmed);
    if (!found) throw new Error(`what begins at character ${at + 1} is not understood`);
    tokens.push({ sign: found[1], literal: found[2], name: found[3] });
  }
  return tokens;
}

/** Parses a filter. `&&` and `||` bind equally and group from the left, as in Ironic. @throws Error */
export function parseFilter(text: string): TraitFilter {
  const tokens = tokensOf(text);
  let at = 0;
  let depth = 0;
  const parenthesized = (): TraitFilter => {
    if (++depth > MAX_PARENTHESES) throw new Error('there are too many parentheses');
    const inner = expression();
    if (tokens[at++]?.sign !== ')') throw new Error('a parenthesis is not closed');
    depth--;
    return inner;
  };
  const single = (): TraitFilter => {
    const { sign, name } = tokens[at++] ?? {};
    if (sign === '(') return parenthesized();
    if (name === undefined) throw new Error('a variable is missing');
    const valueOf = VARIABLES[name];
    if (!valueOf) throw new Error(`there is no variable ${name}`);
    const comparator = tokens[at]?.sign ?? '';
    if (!Object.hasOwn(COMPARISONS, comparator)) {
      if (!FUNCTIONS.includes(name)) throw new Error(`${name} is compared with nothing`);
      return (carrier, network) => valueOf(carrier, network) === true;
    }
    const literal = tokens[at + 1]?.literal;
    if (literal === undefined) throw new Error(`${name} is compared with nothing`);
    at += 2;
    const ofNetwork = name.startsWith('network.');
    return (carrier, network) =>
      (ofNetwork && network === null) || compare(name, valueOf(carrier, network), comparator as Comparator, literal);
  };
  const expression = (): TraitFilter => {
    let left = single();
    for (;;) {
      const operator = tokens[at]?.sign;
      if (operator !== '&&' && operator !== '||') return left;
      at++;
      const [first, second] = [left, single()];
      left =
        operator === '&&'
          ? (carrier, network) => first(carrier, network) && second(carrier, network)
          : (carrier, network) => first(carrier, network) || second(carrier, network);
    }
  };
  const filter = expression();
  if (at < tokens.length) throw new Error(`what begins at word ${at + 1} is not understood`);
  return filter;
}
