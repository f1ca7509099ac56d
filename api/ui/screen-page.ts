/** The page with a node's screen, for whoever has its address (`console_info`). It has no data: the token is in its query. */
import type { RequestListener } from 'node:http';
import { targetOf } from '../http/target';
import { answerAsset, loadAssets, SCREEN } from './assets';

/** Where noVNC has its pages, so that [vnc]public_url of an Ironic works unchanged. */
const PAGES = ['', '/vnc.html', '/vnc_auto.html', '/vnc_lite.html'];
const FILES = '/ui/';

export function answerScreenPage(): RequestListener {
  const assets = loadAssets();
  return (request, response) => {
    const { method, url = '/', headers } = request;
    const { bare } = targetOf(url);
    const name = PAGES.includes(bare) ? SCREEN : bare.startsWith(FILES) ? bare.slice(FILES.length) : '';
    const asset = assets?.get(name);
    if (method !== 'GET' && method !== 'HEAD') response.writeHead(405, { Allow: 'GET, HEAD' }).end();
    else if (!asset) response.writeHead(404).end();
    else {
      const { 'accept-encoding': encoding = '', 'if-none-match': etag = '' } = headers;
      const answer = answerAsset(asset, { encoding, etag });
      response.writeHead(answer.status, answer.headers);
      response.end(method === 'HEAD' ? undefined : Buffer.concat(answer.bytes));
    }
  };
}
