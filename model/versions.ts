/** API versions 1.N ("microversions"): what a request asks for, and whether a gate is open for it. */

/** What openapi.yaml says beside each path, parameter and field. */
export interface Gate {
  readonly since: number;
  readonly until?: number;
  /** Odd ones out: /v1/continue_inspection (since 84) also answers 1.1, what old agents send by sending nothing. */
  readonly also?: readonly number[];
}
export const open = (gate: Gate, minor: number): boolean =>
  (minor >= gate.since && minor <= (gate.until ?? Infinity)) || (gate.also?.includes(minor) ?? false);

/** A value, not a field, that older versions knew otherwise: 'inspect wait' is 'inspecting' below 1.39. */
export interface Rewrite {
  readonly field: string;
  readonly before: number;
  readonly from: unknown;
  readonly to: unknown;
}
export const REWRITES: readonly Rewrite[] = [
  { field: 'provision_state', before: 2, from: 'available', to: null },
  { field: 'provision_state', before: 39, from: 'inspect wait', to: 'inspecting' },
];

export interface VersionRange {
  readonly min: number;
  readonly max: number;
}
export const HEADER = 'X-OpenStack-Ironic-API-Version';
export const MINIMUM = 'X-OpenStack-Ironic-API-Minimum-Version';
export const MAXIMUM = 'X-OpenStack-Ironic-API-Maximum-Version';
export type Negotiation =
  /** `used` is as the answer's header says it; `explicit`: the caller's own header named it. */
  | { readonly minor: number; readonly used: string; readonly explicit: boolean }
  /** `inRange`: it was a version, but not one of ours. */
  | { readonly refusal: string; readonly inRange: boolean };

/** A number as clients spell it: blanks around it and underscores inside do no harm. */
const number = (text: string): number | undefined =>
  /^\s*[+-]?\d+(?:_\d+)*\s*$/.test(text) ? Number(text.replaceAll('_', '')) : undefined;

/** The value of the standard header for our service: `baremetal 1.50`, perhaps among those of other services; the last one counts. */
function standard(header: string | undefined): string | undefined {
  for (const value of (header ?? '').split(',').reverse()) {
    const [service, ...rest] = value.trim().split(/\s+/);
    if (service?.toLowerCase() === 'baremetal' && rest.length > 0) return rest.join(' ');
  }
  return undefined;
}

/**
 * @param own value of X-OpenStack-Ironic-API-Version
 * @param common value of OpenStack-API-Version, which comes first
 */
export function negotiate(own: string | undefined, common: string | undefined, range: VersionRange): Negotiation {
  const said = standard(common) ?? own?.split(',').at(-1)?.trim();
  const asked = !said ? `1.${range.min}` : said.toLowerCase() === 'latest' ? `1.${range.max}` : said;
  const [major, minor] = asked.split('.').length === 2 ? asked.split('.').map(number) : [];
  const versions = `[1.${range.min}, 1.${range.max}]`;
  if (major === undefined || minor === undefined) return { refusal: `Invalid value for ${HEADER} header`, inRange: false };
  if (major !== 1)
    return {
      refusal: `Mutually exclusive versions requested. Version ${major}.${minor} requested but not supported by this service. The supported version range is: ${versions}.`,
      inRange: true,
    };
  if (minor < range.min || minor > range.max)
    return {
      refusal: `Version ${major}.${minor} was requested but the minor version is not supported by this service. The supported version range is: ${versions}.`,
      inRange: true,
    };
  return { minor, used: `1.${minor}`, explicit: !!own };
}
