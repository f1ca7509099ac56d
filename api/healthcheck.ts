/** `/healthcheck` when [healthcheck]enabled: that the process answers, for load balancers; nobody has to say who asks. */

export const isHealthcheck = (path: string): boolean => path === '/healthcheck' || path.startsWith('/healthcheck/');

/** Ironic has no checks by default either: there are no reasons to tell. */
const JSON_TEXT = '{\n    "detailed": false,\n    "reasons": []\n}';

/** Any method is answered. */
export function healthcheck(method: string, accept: string | undefined): { status: number; headers: Record<string, string>; text: string } {
  if (method === 'HEAD') return { status: 204, headers: {}, text: '' };
  return accept?.trim().startsWith('application/json')
    ? { status: 200, headers: { 'Content-Type': 'application/json' }, text: JSON_TEXT }
    : { status: 200, headers: { 'Content-Type': 'text/plain; charset=UTF-8' }, text: '' };
}
