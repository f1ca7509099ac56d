import { callerOf, isRequestId, originFields, type Caller, type Origin } from '../../model/origin';

const ID = 'req-01234567-89ab-cdef-0123-456789abcdef';
it.each([
  [ID, true],
  ['req-01234567-89ab-cdef-0123-456789abcde', false],
  ['req-01234567-89ab-cdef-0123-456789abcdef0', false],
  ['req-01234567-89ab-cdef-456789abcdef', false],
  ['req-01234567-89ab-cdef-0123-0123-456789abcdef', false],
  ['req-0123456-89ab-cdef-0123-456789abcdef', false],
  ['req-01234567-89a-cdef-0123-456789abcdef', false],
  ['req-01234567-89AB-cdef-0123-456789abcdef', false],
  ['req-0123456g-89ab-cdef-0123-456789abcdef', false],
  ['req-0123456789abcdef0123456789abcdef', false],
  ['01234567-89ab-cdef-0123-456789abcdef', false],
  [` ${ID}`, false],
  [`${ID}\n`, false],
  ['', false],
])('isRequestId(%j) is %s', (text, expected) => expect(isRequestId(text)).toBe(expected));

it.each<[Origin, object]>([
  [{ requestId: 'r', user: null, project: null }, { request_id: 'r' }],
  [
    { requestId: 'r', globalRequestId: 'g', user: 'u', project: 'p', admin: true, service: true },
    { request_id: 'r', global_request_id: 'g', user: 'u', project: 'p' },
  ],
  [
    { requestId: 'r', user: 'u', project: null },
    { request_id: 'r', user: 'u' },
  ],
  [
    { requestId: 'r', user: null, project: 'p' },
    { request_id: 'r', project: 'p' },
  ],
])('originFields of %j are %j', (origin, fields) => expect(originFields(origin)).toEqual(fields));

const origin = (more: Partial<Origin> = {}): Origin => ({ requestId: 'req-1', user: null, project: null, ...more });
const ADMIN: Caller = { admin: true, project: 'p' };
const NOBODY: Caller = { admin: false, service: false, project: null };

it.each<[string, Origin | undefined, Caller | undefined, Caller | undefined]>([
  ['a step that is polled', undefined, ADMIN, ADMIN],
  ['periodic work outside of a flow', undefined, undefined, undefined],
  ['the heartbeat of an agent', origin(), ADMIN, ADMIN],
  ['a request without a user outside of a flow', origin(), undefined, NOBODY],
  ['a request of another user during the flow', origin({ user: 'u', project: 'q' }), ADMIN, { admin: false, service: false, project: 'q' }],
  ['a request of a service', origin({ service: true }), ADMIN, { admin: false, service: true, project: null }],
  ['the request that begins a flow', origin({ user: 'u', admin: true }), undefined, { admin: true, service: false, project: null }],
])('%s has the caller', (_, from, requester, caller) => {
  expect(callerOf(from, requester)).toEqual(caller);
});
