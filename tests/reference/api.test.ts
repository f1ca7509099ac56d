/**
 * Our answers beside the real Ironic's. Thousands of requests, generated from openapi.yaml and from tables (requests.ts), are sent to both.
 * Status, headers and bodies must be equal, except for the differences that are listed here with their reasons.
 */
import { startBoth, type Both } from './both';
import { ask, compare, settle, type Difference } from './compare';
import { GROUPS } from './requests/requests';
import { NEWEST_VERSION } from '../support/newest';

const isRefusal = ({ status }: { readonly status: number }): boolean => status >= 400 && status < 500;
/** The sentence of a refusal. Empty: the response has none. */
const sentenceOf = ({ body }: { readonly body: unknown }): string =>
  (body as { readonly error_message?: { readonly faultstring?: string } } | null)?.error_message?.faultstring ?? '';
/** Intended differences, each with its reason. */
const INTENDED: readonly { readonly why: string; readonly is: (difference: Difference) => boolean }[] = [
  {
    why: 'a method that no path of this shape has: 405; Ironic passes the segments to another method as arguments',
    is: ({ reference, ours, request: { method } }) => ours.status === 405 && [400, 405].includes(reference.status) && method !== 'GET',
  },
  {
    why: 'a malformed identifier on a path without GET: 405; Ironic calls the GET of the parent path',
    is: ({ reference, ours, request: { path } }) => ours.status === 405 && reference.status === 400 && path.includes('a%20b'),
  },
  {
    why: 'a malformed identifier and a method that the path does not have: each server reports another one of the two errors',
    is: ({ reference, ours, request: { path } }) => ours.status === 400 && reference.status === 400 && path.includes('a%20b'),
  },
  {
    why: 'ports, portgroups and volumes cannot be created or changed below their node: refused at once; Ironic checks the body first',
    is: ({ reference, ours, request: { path } }) =>
      /^\/v1\/nodes\/[^/]+\/(?:ports|portgroups|volume)/.test(path) &&
      JSON.stringify(ours.body).includes('Malformed request URI') &&
      reference.status === 400,
  },
  {
    why: 'a body that is not JSON is refused for that; Ironic reports its arguments as missing',
    is: ({ ours, request: { body } }) => body === '{bad' && ours.status === 400,
  },
  {
    why: 'an unknown field in the path: the message lists the known fields, as for ?fields=',
    is: ({ reference, ours, request: { path } }) =>
      /^\/v1\/(?:drivers|deploy_templates|chassis|portgroups)\//.test(path) && reference.status === 400 && ours.status === 400,
  },
  {
    why: 'a refusal quotes the beginning of a long value; Ironic quotes all of it',
    is: ({ reference, ours }) => {
      const [start, ...more] = sentenceOf(ours).split('…');
      return more.length > 0 && ours.status === 400 && reference.status === 400 && sentenceOf(reference).startsWith(start!);
    },
  },
  {
    why: 'a patch of a missing member: the message names the existing members; Ironic also shows their values',
    is: ({ reference, ours }) => {
      const [start, ...more] = sentenceOf(ours).split(/(?<=Reason: member '.*' not found in \{)/);
      return more.length > 0 && ours.status === 400 && reference.status === 400 && sentenceOf(reference).startsWith(start!);
    },
  },
  {
    why: 'the message for a null body names the value, as for other bodies; the message of Ironic does not',
    is: ({ reference, ours, request: { body } }) => body === null && reference.status === 400 && ours.status === 400,
  },
  {
    why: '`fields` and `detail` together, both too new: each server reports another one of the two errors',
    is: ({ ours, request: { path } }) => path === '/v1/chassis?detail=true&fields=uuid' && ours.status === 400,
  },
  {
    why: 'an identifier is missing from the path, and the body is invalid: each server reports another one of the two errors',
    is: ({ reference, ours, request: { path } }) => path === '/v1/heartbeat' && reference.status === 400 && ours.status === 400,
  },
  {
    why: 'a POST below an inspection rule is refused for its path; Ironic refuses its body',
    is: ({ reference, ours, request: { method, path } }) =>
      method === 'POST' && path.startsWith('/v1/inspection_rules/') && reference.status === 400 && ours.status === 400,
  },
  {
    why: 'paths below an inspection rule do not exist, also at versions without rules; the refusal has no message',
    is: ({ reference, ours, request: { path } }) => /^\/v1\/inspection_rules\/[^/]+\//.test(path) && reference.status === ours.status,
  },
  {
    why: 'the flag of a sensitive inspection rule cannot be unset; in Ironic it can be removed or set to null',
    is: ({ ours, request: { path } }) =>
      path.startsWith('/v1/inspection_rules/') && JSON.stringify(ours.body).includes('sensitive flag unset'),
  },
  {
    why: 'the detailed list of the ports of a node ignores the filter `node`, also below 1.5, where nodes have no names',
    is: ({ request: { path } }) => /\/ports\/detail\?node=/.test(path),
  },
  {
    why: 'nodes of an unknown chassis, and another error in the query: each server reports another one of the two errors',
    is: ({ reference, ours, request: { path } }) =>
      /^\/v1\/chassis\/cccccccc-[^/]+\/nodes/.test(path) && reference.status >= 400 && ours.status >= 400 && ours.status < 500,
  },
  {
    why: 'an invalid body, sent to a path that does not accept it: each server reports another one of the two errors',
    is: ({ reference, ours, request: { method, body } }) =>
      method !== 'GET' && (JSON.stringify(body) ?? '').includes('"nosuch"') && isRefusal(reference) && isRefusal(ours),
  },
  {
    why: 'HEAD and DELETE of a path that is not a record: the method is refused; in Ironic the record is not found',
    is: ({ reference, ours, request: { method, path } }) =>
      ['HEAD', 'DELETE'].includes(method) &&
      /\/vendor_passthru\/|\/portgroups\/detail$/.test(path) &&
      reference.status === 404 &&
      [404, 405].includes(ours.status),
  },
  {
    why: 'ports of an unknown portgroup, and a parameter that is too new: each server reports another one of the two errors',
    is: ({ reference, ours, request: { path } }) =>
      /^\/v1\/portgroups\/cccccccc-[^/]+\/ports/.test(path) && reference.status === 404 && isRefusal(ours),
  },
  {
    why: 'an unknown field is refused even if the list is empty; Ironic does not check the fields of an empty list',
    is: ({ reference, ours, request: { path } }) =>
      path.includes('nosuch') && path.includes('fields=') && reference.status === 200 && ours.status === 400,
  },
  {
    why: 'the events of the last hours can be read; in Ironic events can only be sent',
    is: ({ reference, ours, request: { method, path } }) =>
      method === 'GET' && path === '/v1/events' && reference.status === 405 && ours.status === 200,
  },
  {
    why: 'a boot mode cannot be set in a transient state: the message names the state; the message of Ironic has its placeholder',
    is: ({ reference, ours }) =>
      ours.status === 409 && reference.status === 409 && JSON.stringify(reference.body).includes('Node is in %(state)s state'),
  },
  {
    why: 'plugin_data has MAC addresses in lower case, as ports do; Ironic keeps the case that the agent sent',
    is: ({ reference, ours, request: { path } }) =>
      path.endsWith('/inventory') && JSON.stringify(reference.body).toLowerCase() === JSON.stringify(ours.body).toLowerCase(),
  },
  {
    why: 'the message for parameters that the query of a BIOS setting must not have is the same for all paths',
    is: ({ reference, ours, request: { path } }) => path.includes('/bios/virt?') && reference.status === 400 && ours.status === 400,
  },
];

let both: Both;
beforeAll(async () => {
  both = await startBoth({ inspector: { require_managed_boot: 'false' } });
}, 1_800_000);
afterAll(() => both?.stop(), 60_000);

/** A difference in a few lines. */
const brief = ({ request, reference, ours }: Difference): string =>
  [
    `${request.method} ${request.path} at ${request.version ?? 'no version'}: ${JSON.stringify(request.body)?.slice(0, 200) ?? 'no body'}`,
    ...[reference, ours].map(({ status, headers, body }) => `${status} ${JSON.stringify(body).slice(0, 600)} ${JSON.stringify(headers)}`),
  ].join('\n');

const total = { asked: 0, alike: 0, intended: 0, failures: 0 };
describe('answers as the real Ironic', () => {
  it.each(Object.keys(GROUPS))(
    '%s',
    async (name) => {
      const { asked, failures, differences } = await compare(both.reference, both.ours, GROUPS[name]!());
      const unintended = differences.filter((difference) => !INTENDED.some((candidate) => candidate.is(difference)));
      total.asked += asked;
      total.alike += asked - failures.length - differences.length;
      total.intended += differences.length - unintended.length;
      total.failures += failures.length;
      expect(unintended.map(brief)).toEqual([]);
    },
    // Thousands of requests to two servers, on a machine that may be busy.
    1_800_000,
  );
  it.each([
    [{ interface: 'bios', step: 'apply_configuration' }],
    [{ interface: 'bios', step: 'factory_reset', args: { x: 1 } }],
    [{ interface: 'firmware', step: 'update' }],
    [{ interface: 'vendor', step: 'log_passthrough', args: { a: 1 } }],
  ])('refuses %j in the words with which the node fails there', async (step) => {
    const uuid = 'cccccccc-0000-4000-8000-0000000000d9';
    const node = `/v1/nodes/${uuid}`;
    const [there, here] = await Promise.all(
      [both.reference, both.ours].map(async (base) => {
        const send = (method: string, path: string, body?: unknown) => ask(base, { method, path, body, version: NEWEST_VERSION });
        await send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid, bios_interface: 'fake', firmware_interface: 'fake' });
        await send('PUT', `${node}/states/provision`, { target: 'manage' });
        await settle(base, uuid);
        const answer = await send('PUT', `${node}/states/provision`, { target: 'clean', clean_steps: [step] });
        await settle(base, uuid);
        const { last_error } = JSON.parse((await send('GET', node)).body) as { last_error: string | null };
        await send('PUT', `${node}/maintenance`, {});
        await send('DELETE', node);
        return { status: answer.status, refusal: answer.body, last_error };
      }),
    );
    expect(there!.status).toBe(202);
    expect(here).toMatchObject({ status: 400, last_error: null });
    expect(there!.last_error).not.toBeNull();
    const { error_message: text } = JSON.parse(here!.refusal) as { error_message: string };
    expect(JSON.parse(text)).toMatchObject({ faultstring: there!.last_error });
  });
  it('asks thousands of questions', () => {
    console.info(
      `${total.asked} requests: ${total.alike} alike, ${total.intended} with intended differences, ${total.failures} where Ironic fails (5xx)`,
    );
    expect(total.asked).toBeGreaterThan(5000);
    // Requests at which the reference fails (5xx) do not count.
    expect(total.alike / (total.asked - total.failures)).toBeGreaterThan(0.96);
  });
});
