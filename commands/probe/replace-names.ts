/** What `bloomery probe --record` replaces, by the names of properties. The table of values is in replace.ts. */

/** `keep`: a text whose value is one of the schema's or of the maker's. */
export type Kind = 'serial number' | 'MAC address' | 'IP address' | 'host name' | 'account' | 'secret' | 'place' | 'file' | 'keep';

/** The first row counts. Names may have a path before them, as the attributes of Dell have (`Users.2.Password`). */
const NAMES: readonly { readonly kind: Kind; readonly name: RegExp }[] = [
  { kind: 'keep', name: /@(?:odata|redfish|message)\./i },
  { kind: 'keep', name: /(?:State|Status|Type|Length|Enabled|Policy|Format|Origin|Count|Support|Expiration)$/i },
  {
    kind: 'secret',
    name: /(?:passwords?|passphrase|passwd|secret|tokens?|credentials?|privatekey|publickey|hostkey|authorizedkeys|authkey|psk|presharedkey|encryptionkey|securitykey|licensekey|v3key|communit(?:y|yname|ystring|ynames|ystrings)|certificatestring|csrstring|kmskey|chapsecret|fingerprint|signature|_key|licensestring|licenselist|entitlementid|pin)$/i,
  },
  { kind: 'MAC address', name: /(?:mac|mac_?addr|mac_?address(?:es)?|associatednetworkaddresses|networkaddress)$/i },
  {
    kind: 'serial number',
    name: /(?:serial|serial_?no|serial_?num|serial_?number|servicetag|assettag|asset_tag|^sku|expressservicecode|ppid|nodeid|uuid|guid|wwn|wwnn|wwpn|wwid|sasaddress|durablename|uniqueidentifier|naa|eui|nguid|chassisid|isn|psn|manufacturingid|systemid|deviceidentifier)$/i,
  },
  {
    kind: 'IP address',
    name: /(?:address|addresses|addr|gateway|nameservers?|dnsservers?|ntpservers?|dns[1-4]|ip|origin|servers?|server[1-9]|destination)$/i,
  },
  {
    kind: 'host name',
    name: /(?:host_?name|fqdn|fqhn|domain_?name|dnsname|commonname|racname|systemname|servername|searchdomains?|domainsuffix|realm|dnsdomain|initiatorname|targetname|alternativenames?|subjectalternativenames?)$/i,
  },
  {
    kind: 'account',
    name: /(?:user_?name|^user|loginname|lastuser|createdby|binddn|contact(?:name|email|info)?|email(?:address)?|owner|ownername|remotegroup|remoteuser|basedistinguishednames?|serviceaccount|organization(?:unit|alunit)?)$/i,
  },
  {
    kind: 'place',
    name: /^(?:street|streetsuffix|housenumber|housenumbersuffix|building|floor|room|seat|unit|city|county|district|division|neighborhood|postalcode|landmark|territory|leadingstreetdirection|additionalcode|additionalinfo|community|altitudemeters|latitude|longitude|rack|rackname|row|aisle|roomname|datacenter(?:name)?|syslocation|systemlocation|custom)$/i,
  },
  { kind: 'file', name: /^(?:image|imagename|imageuri|imagepath|sharename|filename|backupfilelocation)$/i },
];
/** Names that are told from others by what stands before them. */
const LAST_PART = /^(?:.*\.)?([^.]+)$/;
export function kindOf(name: string): Kind | undefined {
  if (name.includes('@')) return 'keep';
  const last = LAST_PART.exec(name)?.[1] ?? name;
  return NAMES.find((row) => row.name.test(last))?.kind;
}

/** Properties whose numbers with four parts are versions, not addresses. */
export const VERSION_NAME = /version|firmware|revision|release|build|level/i;
/** Properties that name a product. A serial number with the same value (as some SKUs) is none. */
export const PRODUCT_NAME = /^(?:Model|Manufacturer|Vendor|Product|PartNumber|SparePartNumber|ProductName|BoardModel)$/;
/** What makers write where there is no value. */
export const PLACEHOLDER =
  /^(?:n\/?a|na|none|null|unknown|undefined|not (?:specified|available|applicable|present|set|defined)|to be filled.*|default(?: string)?|system serial number|empty|no dimm|[-_. ]*|(.)\1*|[0.:x-]+)$/i;
/** Accounts and hosts of the makers' defaults and of every day, which tell nothing about a site. Elsewhere the words have other meanings. */
export const GENERIC: ReadonlySet<string> = new Set(
  'root admin administrator operator user guest system systems manager managers server localhost service services redfish anonymous test public private readonly default none unknown oem power chassis members links actions bmc idrac ilo host gpu self local hostname http https true false enabled disabled'.split(
    ' ',
  ),
);
