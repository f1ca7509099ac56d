/** `bloomery erasures …`: lists, shows, saves and verifies certificates of erasure (docs/erase.md). */
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { isObject } from '../../model/json';
import { printable } from '../../model/log';
import type { JsonObject } from '../../model/records';
import { readVerifyingKey, verifyingKey } from '../../wire/signing/signing-key';
import { get, parseJson } from '../endpoint';
import { print, printError, printJson, reported } from '../output';

interface Arguments {
  readonly url?: string;
  readonly json?: boolean;
}
interface Listed {
  readonly uuid: string;
  readonly [more: string]: unknown;
}
interface Certificate extends Listed {
  readonly document: string;
  readonly signature: string;
  readonly public_key: string;
}
const isListed = (value: unknown): value is Listed => isObject(value) && typeof value['uuid'] === 'string';
const isCertificate = (value: unknown): value is Certificate =>
  isListed(value) && ['document', 'signature', 'public_key'].every((name) => typeof value[name] === 'string');
const certificate = (url: string | undefined, uuid: string): Promise<Certificate> =>
  get(url, `erasures/${encodeURIComponent(uuid)}`, (body) => (isCertificate(body) ? body : undefined));

const text = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? printable(String(value)) : '-');
const line = ({ uuid, created_at: at, node_name: name, node_uuid: node, step, erased, skipped, serials }: Listed): string =>
  [
    text(uuid),
    text(at),
    text(name ?? node),
    text(step),
    `${text(erased)} erased, ${text(skipped)} left`,
    ...(Array.isArray(serials) ? serials.map(text) : []),
  ].join('  ');

const GiB = 2 ** 30;
const size = (bytes: unknown): string => (typeof bytes === 'number' ? `${(bytes / GiB).toFixed(1)} GiB` : '-');
function sampleText(sample: unknown): string {
  if (!isObject(sample)) return 'no places were read back';
  const { places, zero, blank, changed, same, unreadable } = sample;
  return `${text(places)} places were read back: ${text(zero)} zero, ${text(blank)} blank, ${text(changed)} changed, ${text(same)} as before, ${text(unreadable)} unreadable`;
}
function diskLines(disk: JsonObject): readonly string[] {
  const { name, serial, wwn, model, erased, reason, method, proves, seconds, sample, seconds_of_an_overwriting_pass: pass } = disk;
  const head = `  ${text(name)}  serial ${text(serial)}  WWN ${text(wwn)}  ${text(model)}  ${size(disk['size'])}`;
  if (erased !== true) return [head, `    left as it was: ${text(reason)}`];
  const saved = typeof pass === 'number' ? `; a pass of overwriting would take about ${pass} s` : '';
  return [head, `    ${text(method)}, ${text(seconds)} s${saved}`, `    ${text(proves)}`, `    ${sampleText(sample)}`];
}
/** What a document says. Its words are shown as they are signed. */
function documentText(document: JsonObject): string {
  const of = (name: string): JsonObject => (isObject(document[name]) ? document[name] : {});
  const [node, instance, requested, issued] = [of('node'), of('instance'), of('requested'), of('issued_by')];
  const disks = Array.isArray(document['disks']) ? (document['disks'] as unknown[]).filter(isObject) : [];
  return [
    `certificate ${text(document['uuid'])} of ${text(document['issued_at'])}`,
    `  node ${text(node['name'])} (${text(node['uuid'])}), instance ${text(instance['uuid'])}`,
    `  requested by ${text(requested['by_user'])} at ${text(requested['at'])}: ${text(requested['erase'])}`,
    `  step ${text(document['step'])}, issued by ${text(issued['conductor'])} with the key ${text(issued['key'])}`,
    ...disks.flatMap(diskLines),
  ].join('\n');
}
function parsedDocument(given: string): JsonObject {
  const document = parseJson(given);
  if (!isObject(document) || document['type'] !== 'certificate of erasure') throw new Error('the document is no certificate of erasure');
  return document;
}

const list = ({ url, json, node, serial }: Arguments & { readonly node?: string; readonly serial?: string }): Promise<void> =>
  reported(async () => {
    const query = Object.entries({ node, serial }).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
    );
    const found = await get(url, `erasures${query.length > 0 ? `?${query.join('&')}` : ''}`, (body) => {
      const listed = isObject(body) ? body['erasures'] : undefined;
      return Array.isArray(listed) && (listed as unknown[]).every(isListed) ? listed : undefined;
    });
    if (json) printJson(found);
    else print(found.length === 0 ? 'no certificates of erasure' : found.map(line).join('\n'));
  });

const show = (uuid: string, { url, json }: Arguments): Promise<void> =>
  reported(async () => {
    const found = await certificate(url, uuid);
    if (json) printJson(found);
    else print(documentText(parsedDocument(found.document)));
  });

/** Never over another file. */
async function store(path: string, content: string | Buffer): Promise<void> {
  const file = await open(path, 'wx', 0o644);
  try {
    await file.writeFile(content);
  } finally {
    await file.close();
  }
}
const save = (uuid: string, { url, to = '.' }: Arguments & { readonly to?: string }): Promise<void> =>
  reported(async () => {
    const found = await certificate(url, uuid);
    // The name of the files is that of the request: an answer does not choose where they go.
    if (!/^[0-9a-f-]{36}$/i.test(uuid)) throw new Error('a certificate has a UUID');
    const [document, signature, key] = ['json', 'sig', 'pem'].map((ending) => join(to, `${uuid}.${ending}`)) as [string, string, string];
    await store(document, found.document);
    await store(signature, Buffer.from(found.signature, 'base64'));
    await store(key, found.public_key);
    print([document, signature, key].join('\n'));
  });

/** The certificate's file, without its ending. */
const base = (path: string): string => path.replace(/\.json$/, '');
const verify = (path: string, given: { readonly signature?: string; readonly key?: string; readonly json?: boolean }): Promise<void> =>
  reported(async () => {
    const document = await readFile(path, 'utf8');
    const signature = await readFile(given.signature ?? `${base(path)}.sig`);
    const key = given.key === undefined ? verifyingKey(await readFile(`${base(path)}.pem`, 'utf8')) : await readVerifyingKey(given.key);
    const isValid = key.signed(document, signature.toString('base64'));
    if (given.json) printJson({ valid: isValid, key: key.fingerprint, document: isValid ? parsedDocument(document) : null });
    else if (isValid) print(`valid: signed by the key ${key.fingerprint}\n${documentText(parsedDocument(document))}`);
    if (isValid && given.key === undefined)
      printError('bloomery: the public key came with the certificate: name the key of your site (--key), or compare its fingerprint');
    if (isValid) return;
    if (!given.json) print(`NOT VALID: the key ${key.fingerprint} has not signed this document`);
    process.exitCode = 1;
  });

export function addErasureCommands(program: Command): void {
  const erasures = program.command('erasures').description('List, show, save and verify certificates of erasure.');
  const add = (name: string, about: string): Command =>
    erasures.command(name).description(about).option('--url <url>', 'the server, as for bloomery why');
  const UUID = 'UUID of the certificate';
  add('list', 'List certificates. They outlive their nodes.')
    .option('--json', 'print JSON')
    .option('--node <node>', 'only those of this node: its UUID, or the name that it had')
    .option('--serial <serial>', 'only those of the disk with this serial number')
    .action(list);
  add('show', 'Show a certificate.').argument('<uuid>', UUID).option('--json', 'print JSON').action(show);
  add('save', 'Write a certificate, its signature and the public key into files, which openssl can check.')
    .argument('<uuid>', UUID)
    .option('--to <folder>', 'the folder; default: the current one')
    .action(save);
  erasures
    .command('verify')
    .description('Check a saved certificate, without a server. The status is 1 if it is not valid.')
    .argument('<file>', 'the document, as save has written it')
    .option('--signature <file>', 'the signature; default: the file with the ending .sig beside the document')
    .option('--key <file>', 'the public key of the site in PEM; default: the file with the ending .pem beside the document')
    .option('--json', 'print JSON')
    .action(verify);
}
