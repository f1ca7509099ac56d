import { isRequestId, originFields, type Origin } from '../../model/origin';

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
