/** Certificates of erasure, with a row for each disk. Pure. */
import { isObject, type JsonObject } from '../../model/json';

function parsed(text: unknown): JsonObject {
  try {
    const value: unknown = JSON.parse(String(text));
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
const sampleOf = (sample: unknown): string => {
  if (!isObject(sample)) return '';
  const { places, zero, blank, changed, same, unreadable } = sample;
  return `${String(places)} places: ${String(zero)} zero, ${String(blank)} blank, ${String(changed)} changed, ${String(same)} as before, ${String(unreadable)} unreadable`;
};

/** The signed document says what became of each disk. */
export function certifiedDisksOf({ erasures }: JsonObject): readonly JsonObject[] {
  const listed = Array.isArray(erasures) ? (erasures as unknown[]).filter(isObject) : [];
  return listed.flatMap(({ uuid, created_at: at, step, document }) => {
    const { disks, requested } = parsed(document);
    const by = isObject(requested) ? requested['by_user'] : undefined;
    return (Array.isArray(disks) ? (disks as unknown[]).filter(isObject) : []).map((disk) => ({
      created_at: at,
      uuid,
      step,
      disk: disk['name'],
      serial: disk['serial'],
      what: disk['erased'] === true ? disk['method'] : `left: ${String(disk['reason'])}`,
      proves: disk['proves'] ?? '',
      seconds: disk['seconds'] ?? '',
      sample: sampleOf(disk['sample']),
      by: by ?? '',
    }));
  });
}
