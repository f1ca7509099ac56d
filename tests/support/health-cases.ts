/**
 * Requests of /healthcheck with the answers of oslo.middleware 8: sent to our server in tests/api, and to the real middleware in
 * tests/reference.
 */
export interface HealthCase {
  readonly options?: Readonly<Record<string, string | boolean | readonly string[]>>;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly remote?: string;
  /** Status, type, text; `passed on`: the middleware passed the request on. */
  readonly expected: readonly [number, string | null, string] | 'passed on';
}
const PLAIN = 'text/plain; charset=UTF-8';
const html = (...reasons: readonly string[]): string =>
  `<HTML>\n<HEAD><TITLE>Healthcheck Status</TITLE></HEAD>\n<BODY>\n\n<H2>Result of ${reasons.length} checks:</H2>\n` +
  '<TABLE bgcolor="#ffffff" border="1">\n<TBODY>\n<TR>\n\n<TH>\nReason\n</TH>\n</TR>\n' +
  `${reasons.map((reason) => `<TR>\n\n    <TD>${reason}</TD>\n\n</TR>`).join('')}\n</TBODY>\n</TABLE>\n<HR></HR>\n\n</BODY>\n</HTML>`;
const json = (...reasons: readonly string[]): string =>
  reasons.length === 0
    ? '{\n    "detailed": false,\n    "reasons": []\n}'
    : `{\n    "detailed": false,\n    "reasons": [\n${reasons.map((reason) => `        "${reason}"`).join(',\n')}\n    ]\n}`;
const found = { backends: ['disable_by_file'], disable_by_file_path: '/etc/passwd' };
const absent = { backends: ['disable_by_file'], disable_by_file_path: '/nonexistent' };
const accept = (text: string) => ({ headers: { Accept: text } });
const from = (range: string, remote: string) => ({ options: { allowed_source_ranges: [range] }, remote });

export const HEALTH_CASES: readonly HealthCase[] = [
  { expected: [200, PLAIN, ''] },
  { method: 'POST', expected: [200, PLAIN, ''] },
  { method: 'HEAD', expected: [204, null, ''] },
  { ...accept('text/html'), expected: [200, 'text/html; charset=UTF-8', html()] },
  { ...accept('application/json'), expected: [200, 'application/json', json()] },
  { ...accept('image/png'), expected: [200, PLAIN, ''] },
  { ...accept('junk'), expected: [200, PLAIN, ''] },
  { ...accept('*/*'), expected: [200, PLAIN, ''] },
  { ...accept('text/*;q=0.1, application/json;q=0.5'), expected: [200, 'application/json', json()] },
  { ...accept('text/*;q=0.5, text/plain;q=0, */*;q=0.1'), expected: [200, 'text/html; charset=UTF-8', html()] },
  { ...accept('application/json;q=0.9, text/html;q=0.9'), expected: [200, 'text/html; charset=UTF-8', html()] },
  { options: absent, expected: [200, PLAIN, 'OK'] },
  { options: found, expected: [503, PLAIN, 'DISABLED BY FILE'] },
  { options: found, method: 'HEAD', expected: [503, PLAIN, ''] },
  { options: found, ...accept('text/html'), expected: [503, 'text/html; charset=UTF-8', html('DISABLED BY FILE')] },
  { options: found, ...accept('application/json'), expected: [503, 'application/json', json('DISABLED BY FILE')] },
  { options: { backends: ['disable_by_file'] }, expected: [200, PLAIN, 'OK'] },
  {
    options: { ...absent, backends: ['disable_by_file', 'disable_by_files_ports'] },
    ...accept('application/json'),
    expected: [200, 'application/json', json('OK', 'OK')],
  },
  {
    options: {
      ...absent,
      backends: ['disable_by_files_ports', 'disable_by_file'],
      disable_by_file_paths: ['1:/nonexistent', '6385:/etc/passwd'],
    },
    expected: [503, PLAIN, 'DISABLED BY FILE\nOK'],
  },
  { options: { backends: ['disable_by_files_ports'], disable_by_file_paths: ['1:/etc/passwd'] }, expected: [200, PLAIN, 'OK'] },
  { options: { backends: ['enable_by_files'], enable_by_file_paths: ['/etc/passwd'] }, expected: [200, PLAIN, 'OK'] },
  {
    options: { backends: ['enable_by_files'], enable_by_file_paths: ['/etc/passwd', '/nonexistent'] },
    expected: [503, PLAIN, 'FILE PATH MISSING'],
  },
  { ...from('10.0.0.0/8', '10.1.2.3'), expected: [200, PLAIN, ''] },
  { ...from('10.0.0.0/8', '11.1.2.3'), expected: 'passed on' },
  { ...from('10.1.2.3', '10.1.2.3'), expected: [200, PLAIN, ''] },
  { ...from('fd00::/16', 'fd00::1'), expected: [200, PLAIN, ''] },
  { ...from('fd00::/16', '127.0.0.1'), expected: 'passed on' },
  { options: { ignore_proxied_requests: true }, expected: [200, PLAIN, ''] },
  { options: { ignore_proxied_requests: true }, headers: { 'X-Forwarded-For': '1.2.3.4' }, expected: 'passed on' },
  { options: { ignore_proxied_requests: true }, headers: { Forwarded: 'for=1.2.3.4' }, expected: [200, PLAIN, ''] },
];
