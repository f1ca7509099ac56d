/** Extensions: the OpenAPI document of one version, and a page that shows it without resources of other hosts. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { invalidParameter, notFound } from '../../model/errors';
import type { Document } from '../schema/document';
import { documentOfVersion } from '../schema/document-version';
import type { Answer, SomeHandlers } from '../pipeline/handler';

/** @throws Fault InvalidParameterValue */
function minorOf(version: string | undefined, { min, max }: Document): number {
  if (version === undefined || version === 'latest') return max;
  const minor = /^1\.(\d{1,4})$/.exec(version)?.[1];
  if (minor === undefined || Number(minor) < min || Number(minor) > max)
    throw invalidParameter(`Invalid value for version: the versions are 1.${min} to 1.${max}`);
  return Number(minor);
}

/** Rendered versions of a document. Each takes some hundred kilobytes, and ten milliseconds to render. */
interface Rendered {
  readonly versions: LRUCache<number, Promise<Buffer>>;
  /** Resolves when the version before is rendered. Versions are rendered one by one, and other requests have their turn in between. */
  last: Promise<unknown>;
}
const MAX_RENDERED = 8;
const rendered = new WeakMap<Document, Rendered>();
function render(document: Document, minor: number): Promise<Buffer> {
  const state: Rendered = rendered.get(document) ?? { versions: new LRUCache({ max: MAX_RENDERED }), last: Promise.resolve() };
  rendered.set(document, state);
  const { versions } = state;
  const text =
    versions.get(minor) ??
    state.last.then(() => setImmediate()).then(() => Buffer.from(JSON.stringify(documentOfVersion(document, minor))));
  state.last = text;
  versions.set(minor, text);
  return text;
}

const SAFE = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};
const page = (type: string, bytes: Buffer): Answer => ({
  status: 200,
  bytes: [bytes],
  headers: { ...SAFE, 'Content-Type': `${type}; charset=utf-8` },
});

/** Assets of the package → content type; and the script that starts the page. */
const ASSETS: Readonly<Record<string, string>> = { 'swagger-ui.css': 'text/css', 'swagger-ui-bundle.js': 'text/javascript' };
const START = 'start.js';
/** The path prefix of a proxy in front of this server. */
const prefixOf = (base: string): string => new URL(base).pathname.replace(/\/$/, '');

export const docsHandlers = {
  showDocument: async ({ query }, { document }) => ({
    status: 200,
    bytes: [await render(document, minorOf(query.version, document))],
  }),
  showDocsPage: async ({ base }) => {
    const at = `${prefixOf(base)}/v1/docs`;
    const scripts = ['swagger-ui-bundle.js', START].map((name) => `<script src="${at}/${name}"></script>`).join('\n');
    const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Bloomery: the API</title><link rel="stylesheet" href="${at}/swagger-ui.css"></head>
<body><div id="api"></div>
${scripts}
</body>
</html>
`;
    return page('text/html', Buffer.from(html));
  },
  showDocsAsset: async ({ params, base }) => {
    const name = params.asset;
    if (name === START) {
      const url = JSON.stringify(`${prefixOf(base)}/v1/openapi.json`);
      // The page's own URL selects the version: /v1/docs?version=1.72.
      const script = `SwaggerUIBundle({ url: ${url} + location.search, dom_id: '#api', deepLinking: true, validatorUrl: null });\n`;
      return page('text/javascript', Buffer.from(script));
    }
    const type = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
    if (type === undefined) throw notFound();
    return page(type, await readFile(join(dirname(require.resolve('swagger-ui-dist/package.json')), name)));
  },
} satisfies SomeHandlers;
