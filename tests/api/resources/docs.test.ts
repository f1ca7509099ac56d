import { loadDocument } from '../../../api/schema/document';
import { matching, useApi } from '../../support/api';

const api = useApi();
const { max } = loadDocument();

it.each([
  ['', max, `1.${max}`],
  ['?version=latest', max, `1.${max}`],
  ['?version=1.50', 1, '1.50'],
  // `.json` is part of this path. From other paths, the server cuts such a suffix below 1.91.
  ['?version=1.1', 50, '1.1'],
])('returns the OpenAPI document of the version in %p, or else of the newest, at 1.%p', async (query, minor, version) => {
  const { status, body } = await api.ask('GET', `/v1/openapi.json${query}`, minor);
  expect({ status, body }).toMatchObject({ status: 200, body: { openapi: '3.0.3', info: { version } } });
});
it.each([`1.${max + 1}`, '1.0', '2.1', '1.1e1', 'junk', ''])('refuses version %p', async (version) => {
  expect(await api.ask('GET', `/v1/openapi.json?version=${version}`)).toMatchObject({
    status: 400,
    fault: `Invalid value for version: the versions are 1.1 to 1.${max}`,
  });
});

describe('the page of the documentation', () => {
  const browser = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
  it('loads only files of this server', async () => {
    const { status, headers, text } = await api.ask('GET', '/docs?version=1.72', null, { headers: browser });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': matching(/default-src 'none'; script-src 'self';/),
    });
    const parts = [...text.matchAll(/(?:src|href)="([^"]*)"/g)].map((match) => match[1]!);
    expect(parts).toEqual(['/v1/docs/swagger-ui.css', '/v1/docs/swagger-ui-bundle.js', '/v1/docs/start.js']);
    expect(text).not.toMatch(/https?:|<script>|<style>/);
    for (const part of parts) expect((await api.ask('GET', part, null, { headers: { Accept: '*/*' } })).status).toBe(200);
    expect((await api.ask('GET', '/v1/docs/start.js', null)).text).toContain('url: "/v1/openapi.json" + location.search');
  });
  it.each(['package.json', '..%2fpackage.json', 'constructor'])('does not serve the file %s', async (name) => {
    expect((await api.ask('GET', `/v1/docs/${name}`, null)).status).toBe(404);
  });
});
