/** The files of the page, which `npm run build` writes to dist/ui. All are read at the start, so that requests never open files. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { preferred } from '../http/accept';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Content codings in the order of preference → the ending of the compressed file. */
const CODINGS = { br: '.br', gzip: '.gz' } as const;
const SAFE = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

interface Asset {
  readonly bytes: Buffer;
  readonly compressed: Readonly<Partial<Record<keyof typeof CODINGS, Buffer>>>;
  readonly headers: Readonly<Record<string, string>>;
}
/** Name → file. */
export type Assets = ReadonlyMap<string, Asset>;
export const INDEX = 'index.html';
export const SCREEN = 'screen.html';

function readAsset(folder: string, name: string): Asset {
  const bytes = readFileSync(join(folder, name));
  const compressed = Object.fromEntries(
    Object.entries(CODINGS).flatMap(([coding, ending]) => {
      const file = join(folder, name + ending);
      return existsSync(file) ? [[coding, readFileSync(file)]] : [];
    }),
  );
  return {
    bytes,
    compressed,
    headers: {
      ...SAFE,
      'Content-Type': TYPES[extname(name)]!,
      // The names of all other files contain a hash of their content.
      'Cache-Control': [INDEX, SCREEN].includes(name) ? 'no-cache' : 'public, max-age=31536000, immutable',
      ETag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
      Vary: 'Accept, Accept-Encoding',
    },
  };
}
/** Undefined: the page is not built. */
export function loadAssets(): Assets | undefined {
  const folder = ['../../ui', '../../dist/ui'].map((place) => join(__dirname, place)).find((place) => existsSync(join(place, INDEX)));
  if (folder === undefined) return undefined;
  const names = readdirSync(folder).filter((name) => Object.hasOwn(TYPES, extname(name)));
  return new Map(names.map((name) => [name, readAsset(folder, name)]));
}

interface AssetAnswer {
  readonly status: number;
  readonly bytes: readonly Buffer[];
  readonly headers: Readonly<Record<string, string>>;
}
export function answerAsset(
  { bytes, compressed, headers }: Asset,
  request: { readonly encoding: string; readonly etag: string },
): AssetAnswer {
  if (request.etag === headers['ETag']) return { status: 304, bytes: [], headers };
  const codings = Object.keys(compressed) as (keyof typeof CODINGS)[];
  const names = request.encoding.split(',').map((part) => part.split(';', 1)[0]!.trim());
  const coding = codings.find((name) => names.includes(name));
  if (coding === undefined) return { status: 200, bytes: [bytes], headers };
  return { status: 200, bytes: [compressed[coding]!], headers: { ...headers, 'Content-Encoding': coding } };
}

/** Whether a browser asks to show a page. Clients of the API accept JSON or anything. */
export const acceptsPage = (accept: string | undefined): boolean =>
  accept?.includes('text/html') === true && preferred(accept, ['application/json', 'text/html']) === 'text/html';
