/** Hardware types and interfaces of Ironic, from Ocata to 39, that are not here, and what replaces them. Most are gone from Ironic itself. */
import type { InterfaceKind } from '../records';

export type RetiredKind = InterfaceKind | 'hardware type';
/** A name, and what to use. The first row counts. */
type Successors = readonly (readonly [name: RegExp, use: string])[];

const ELSEWHERE =
  /^(?:(?:ilo5?|irmc|ibmc|xclarity|cimc|ucsm|cisco-ucs-managed|cisco-ucs-standalone|oneview)(?:-.*)?|idrac(?:-wsman|-inspector)?|snmp|staging-ovirt|ipmitool-shellinabox|inspector|iscsi|ansible)$/;
/** Makers' machines that have Redfish too. */
const WITH_REDFISH = /^(?:ilo5?|irmc|ibmc|xclarity|cimc|ucsm|cisco-ucs-managed|cisco-ucs-standalone|oneview)$/;
/** Whether Ironic has or had something of this name. Other names are mistakes. */
export const isElsewhere = (name: string): boolean => ELSEWHERE.test(name);

/** Kinds of which BMCs have an interface. */
const OF_BMCS: readonly RetiredKind[] = ['bios', 'inspect', 'management', 'power', 'raid', 'vendor'];
/** For the names that have no row of their kind. */
const BMC_INTERFACES: Successors = [
  [/^idrac(?:-wsman)?$/, 'use idrac-redfish'],
  [WITH_REDFISH, 'use redfish, with the driver redfish'],
  [/^snmp$/, 'use ipmitool or redfish, with their drivers'],
];
const BY_KIND: Partial<Record<RetiredKind, Successors>> = {
  'hardware type': [
    [WITH_REDFISH, 'use redfish'],
    [/^snmp$/, 'use ipmi or redfish, or manual-management'],
    [/^staging-ovirt$/, 'use redfish, with a Redfish service for virtual machines'],
  ],
  boot: [
    [/^(?:ilo|irmc)-pxe$/, 'use pxe'],
    [/^(?:ilo|irmc)-ipxe$/, 'use ipxe'],
    [/^(?:ilo|irmc)-virtual-media$/, 'use redfish-virtual-media, with the driver redfish'],
    [/^ilo-uefi-https$/, 'use redfish-https, with the driver redfish'],
  ],
  console: [[/^(?:ipmitool-shellinabox|ilo)$/, 'use ipmitool-socat']],
  deploy: [
    [
      /^ansible$/,
      'use custom-agent with deploy steps or hardware managers, or direct with cloud-init; playbooks can run after the deployment',
    ],
    [/^iscsi$/, 'use direct, which writes the same images'],
  ],
  inspect: [[/^(?:idrac-|irmc-|ilo-)?inspector$/, 'use agent, or discoverd for a service of its own']],
};
/** What to use instead, as a clause; undefined: nothing replaces it. */
export const successorOf = (kind: RetiredKind, name: string): string | undefined =>
  [...(BY_KIND[kind] ?? []), ...(OF_BMCS.includes(kind) ? BMC_INTERFACES : [])].find(([of]) => of.test(name))?.[1];
