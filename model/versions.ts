/** API microversions 1.N: negotiation, and checks whether a version includes a feature. */

/** The version range of a path, parameter or field in openapi.yaml. */
export interface Gate {
  readonly since: number;
  /** Additional versions: /v1/continue_inspection (since 84) also supports 1.1, the default of agents that send no header. */
  readonly also?: readonly number[];
}
export const isGateOpen = (gate: Gate, minor: number): boolean => minor >= gate.since || (gate.also?.includes(minor) ?? false);

/** A field value that older versions see differently: 'inspect wait' is 'inspecting' below 1.39. */
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

interface VersionRange {
  readonly min: number;
  readonly max: number;
}
export const HEADER = 'X-OpenStack-Ironic-API-Version';
export const MINIMUM = 'X-OpenStack-Ironic-API-Minimum-Version';
export const MAXIMUM = 'X-OpenStack-Ironic-API-Maximum-Version';
type Negotiation =
  /** `used`: the value of the response header. `explicit`: the request had Ironic's own header. */
  | { readonly minor: number; readonly used: string; readonly explicit: boolean }
  /** `inRange`: the header was a valid version, but an unsupported one. */
  | { readonly refusal: string; readonly inRange: boolean };

/** Parses a number like Python's int(): blanks and underscores are allowed. */
const number = (text: string): number | undefined =>
  /^\s*[+-]?\d+(?:_\d+)*\s*$/.test(text) ? Number(text.replaceAll('_', '')) : undefined;

/** The version for `baremetal` in the standard header, which may also contain versions of other services. The last one applies. */
function standard(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  for (const value of header.split(',').reverse()) {
    const [service, ...rest] = value.trim().split(/\s+/);
    if (service?.toLowerCase() === 'baremetal' && rest.length > 0) return rest.join(' ');
  }
  return undefined;
}

const rangeText = ({ min, max }: VersionRange): string => `[1.${min}, 1.${max}]`;

/**
 * @param own value of X-OpenStack-Ironic-API-Version
 * @param common value of OpenStack-API-Version, which takes precedence
 */
export function negotiate(own: string | undefined, common: string | undefined, range: VersionRange): Negotiation {
  const header = standard(common) ?? own?.split(',').at(-1)?.trim();
  const requested = !header ? `1.${range.min}` : header.toLowerCase() === 'latest' ? `1.${range.max}` : header;
  const parts = requested.split('.');
  const [major, minor] = parts.length === 2 ? parts.map(number) : [];
  if (major === undefined || minor === undefined) return { refusal: `Invalid value for ${HEADER} header`, inRange: false };
  if (major !== 1)
    return {
      refusal: `Mutually exclusive versions requested. Version ${major}.${minor} requested but not supported by this service. The supported version range is: ${rangeText(range)}.`,
      inRange: true,
    };
  if (minor < range.min || minor > range.max)
    return {
      refusal: `Version ${major}.${minor} was requested but the minor version is not supported by this service. The supported version range is: ${rangeText(range)}.`,
      inRange: true,
    };
  return { minor, used: `1.${minor}`, explicit: !!own };
}
