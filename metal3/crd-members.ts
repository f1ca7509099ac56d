/**
 * The members that the CRDs of this cluster have. Server-side apply refuses a whole object for one member that its CRD does not have, and
 * CRDs of older releases of metal3 have fewer: `lldp` came with 0.12, `pciAddress` and the conditions of hosts with 0.13.
 */
import { isObject, objectOf } from '../model/json';
import type { Json } from '../model/records';
import type { Kubernetes } from './kubernetes';

/** The OpenAPI document of metal3's group, which the role system:discovery lets every account read. */
const OPENAPI = '/openapi/v3/apis/metal3.io/v1alpha1';

/** Schemas of the hardware in HardwareData and in the status of hosts; undefined: unknown, so that all members are sent. */
export interface CrdMembers {
  readonly data: Json;
  readonly status: Json;
  /** Undefined: unknown. */
  readonly hasConditions: boolean | undefined;
}
const UNKNOWN_MEMBERS: CrdMembers = { data: undefined, status: undefined, hasConditions: undefined };

const member = (schema: Json, name: string): Json => objectOf(objectOf(schema)['properties'])[name];
function membersOf(document: Json): CrdMembers {
  const schemas = objectOf(objectOf(objectOf(document)['components'])['schemas']);
  const status = member(schemas['io.metal3.v1alpha1.BareMetalHost'], 'status');
  return {
    data: member(member(schemas['io.metal3.v1alpha1.HardwareData'], 'spec'), 'hardware'),
    status: member(status, 'hardware'),
    hasConditions: isObject(status) ? isObject(member(status, 'conditions')) : undefined,
  };
}

/** Follows the members, since the cluster may get other CRDs. */
export function watchMembers(kubernetes: Pick<Kubernetes, 'document'>, signal: AbortSignal) {
  let [members, tag]: [CrdMembers, string | undefined] = [UNKNOWN_MEMBERS, undefined];
  return {
    members: () => members,
    /** Reads them again. @returns whether they are others */
    async read(): Promise<boolean> {
      const found = await kubernetes.document(OPENAPI, tag, signal);
      if (found === 'unchanged') return false;
      const before = members;
      members = found ? membersOf(found.body) : UNKNOWN_MEMBERS;
      tag = found?.tag;
      return JSON.stringify(members) !== JSON.stringify(before);
    },
  };
}

/** The value without the members that the schema does not have. */
export function fitting(value: Json, schema: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => fitting(item, objectOf(schema)['items']));
  const properties = objectOf(schema)['properties'];
  if (!isObject(value) || !isObject(properties)) return value;
  const known = Object.entries(value).filter(([name]) => Object.hasOwn(properties, name));
  return Object.fromEntries(known.map(([name, part]) => [name, fitting(part, properties[name])]));
}
