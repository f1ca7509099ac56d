/** The service catalog of a token: which URL a service has. */
import { isObject } from '../../model/json';
import { withoutEndSlashes } from '../urls';

/** keystoneauth's options for finding a service. */
export interface ServiceSelector {
  /** `identity`, `network`, … */
  readonly serviceType: string;
  /** Absent: any. */
  readonly serviceName?: string | undefined;
  /** In order of preference: `internal`, `public`, … */
  readonly interfaces: readonly string[];
  /** Absent: any. */
  readonly region?: string | undefined;
  /** The URL of the service. If set, the catalog is not read. */
  readonly endpointOverride?: string | undefined;
  /** `v3`: replaces the version at the end of the URL. Absent: the URL as it is. */
  readonly version?: string | undefined;
}
interface Endpoint {
  readonly interface: string;
  readonly region: string | null;
  readonly url: string;
}
interface Service {
  readonly type: string;
  readonly name: string | null;
  readonly endpoints: readonly Endpoint[];
}
export type Catalog = readonly Service[];

export const listOf = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.filter(isObject) : [];
export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Entries that are not services are left out. */
export function catalogOf(value: unknown): Catalog {
  return listOf(value).flatMap(({ type, name, endpoints }) => {
    if (typeof type !== 'string') return [];
    const usable = listOf(endpoints).flatMap(({ interface: named, region, region_id, url }) =>
      typeof named === 'string' && typeof url === 'string' && URL.canParse(url) && /^https?:/i.test(url)
        ? [{ interface: named.toLowerCase(), region: textOf(region) ?? textOf(region_id), url }]
        : [],
    );
    return [{ type, name: textOf(name), endpoints: usable }];
  });
}

/** Some clients write `publicURL`. */
const interfaceOf = (name: string): string => name.toLowerCase().replace(/url$/, '');

/** @returns the URL, without a slash at the end; undefined: the catalog has none */
export function endpointOf(catalog: Catalog, selector: ServiceSelector): string | undefined {
  const { serviceType, serviceName, interfaces, region, endpointOverride } = selector;
  const urlOf = (): string | undefined => {
    if (endpointOverride !== undefined) return endpointOverride;
    const candidates = catalog
      .filter(({ type, name }) => type === serviceType && (serviceName === undefined || name === serviceName))
      .flatMap(({ endpoints }) => endpoints)
      .filter((endpoint) => region === undefined || endpoint.region === region);
    for (const name of interfaces) {
      const found = candidates.find((endpoint) => endpoint.interface === interfaceOf(name));
      if (found) return found.url;
    }
    return undefined;
  };
  return withoutEndSlashes(urlOf());
}
