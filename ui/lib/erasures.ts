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
      instead_of: disk['seconds_of_an_overwriting_pass'] ?? '',
      sample: sampleOf(disk['sample']),
      by: by ?? '',
    }));
  });
}

interface SavedFile {
  readonly name: string;
  readonly title: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}
/** The files that `bloomery erasures save` writes. The document is saved as its characters are: they are what is signed. */
export function certificateFilesOf({ uuid, document, signature, public_key: key }: JsonObject): readonly SavedFile[] {
  const file = (ending: string, title: string, bytes: Uint8Array<ArrayBuffer>) => ({ name: `${String(uuid)}.${ending}`, title, bytes });
  const text = (value: unknown) => new TextEncoder().encode(String(value));
  const signed = Uint8Array.from(atob(String(signature)), (letter) => letter.charCodeAt(0));
  return [
    file('json', 'Save certificate', text(document)),
    file('sig', 'Save signature', signed),
    file('pem', 'Save public key', text(key)),
  ];
}
/** The Base64 of an Ed25519 public key begins so (RFC 8410 §4). */
const ED25519 = 'MCowBQYDK2Vw';
/** Commands that check the files. */
export function checksOf({ uuid, public_key: key }: JsonObject): readonly string[] {
  const name = String(uuid);
  const openssl = String(key).includes(ED25519)
    ? `openssl pkeyutl -verify -pubin -inkey site.pem -rawin -in ${name}.json -sigfile ${name}.sig`
    : `openssl dgst -sha256 -verify site.pem -signature ${name}.sig ${name}.json`;
  return [`bloomery erasures verify ${name}.json --key site.pem`, openssl];
}
