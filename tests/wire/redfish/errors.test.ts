/** The text of a Redfish service's error, and what is left out of it. */
import { shortened } from '../../../model/text';
import { echoesOf, errorWords, hasMessage, isStatus, messagesOf, RedfishError, withoutEchoes } from '../../../wire/redfish/errors';

const withStatus = new RedfishError('status', 'no', { status: 412, messageIds: ['Base.1.8.PropertyUnknown'] });
it.each<[unknown, readonly number[], boolean]>([
  [withStatus, [], true],
  [withStatus, [412], true],
  [withStatus, [400, 412], true],
  [withStatus, [400], false],
  [new RedfishError('task', 'no', { status: 412 }), [412], false],
  [new RedfishError('status', 'no'), [412], false],
  [Object.assign(new Error('no'), { kind: 'status', status: 412 }), [412], false],
  [new Error('no'), [], false],
  [undefined, [], false],
])('isStatus(%p) with the statuses %j is %s', (error, statuses, expected) => {
  expect(isStatus(error, ...statuses)).toBe(expected);
});
it.each<[unknown, string, boolean]>([
  [withStatus, 'PropertyUnknown', true],
  [withStatus, 'Base.1.8.PropertyUnknown', true],
  [withStatus, 'Unknown', false],
  [withStatus, 'Base', false],
  [Object.assign(new Error('no'), { messageIds: ['PropertyUnknown'] }), 'PropertyUnknown', false],
])('hasMessage(%p, %s) is %s', (error, name, expected) => {
  expect(hasMessage(error, name)).toBe(expected);
});
it('RedfishError has defaults for missing details', () => {
  const plain = new RedfishError('unreachable', 'no response');
  expect([plain.status, plain.retryAfterMs, plain.messageIds]).toEqual([undefined, undefined, []]);
  expect(Object.hasOwn(plain, 'cause')).toBe(false);
  const cause = new Error('reset');
  expect(new RedfishError('status', 'busy', { status: 503, retryAfterMs: 2000, cause })).toMatchObject({
    name: 'RedfishError',
    kind: 'status',
    message: 'busy',
    status: 503,
    retryAfterMs: 2000,
    messageIds: [],
    cause,
  });
});

it('withoutEchoes masks secrets of the request in error messages only', () => {
  const { pattern, written } = echoesOf(['pass.word', undefined, 'abc', 'pass.word and "more"'])!;
  expect(written).toEqual(['pass.word and \\"more\\"', 'pass.word']);
  const body = {
    Name: 'pass.word',
    error: {
      code: 'pass.word',
      other: ['pass.word', null, 5, true],
      '@Message.ExtendedInfo': [
        { Message: 'not pass.word and "more", passXword', MessageArgs: ['pass.word', 'abc', { deep: 'pass.word' }], Id: 'pass.word' },
      ],
    },
  };
  expect(withoutEchoes(body, pattern)).toEqual({
    Name: 'pass.word',
    error: {
      code: '******',
      other: ['pass.word', null, 5, true],
      '@Message.ExtendedInfo': [{ Message: 'not ******, passXword', MessageArgs: ['******', 'abc', { deep: '******' }], Id: 'pass.word' }],
    },
  });
  expect(withoutEchoes({ error: 'not pass.word' }, pattern)).toEqual({ error: 'not ******' });
  expect(withoutEchoes('pass.word', pattern)).toBe('pass.word');
  expect(withoutEchoes({ Resolution: 'pass.word', messageid: 'pass.word', CodeName: 'pass.word' }, pattern)).toEqual({
    Resolution: '******',
    messageid: '******',
    CodeName: 'pass.word',
  });
  expect([echoesOf([]), echoesOf([undefined, 'abc'])]).toEqual([undefined, undefined]);
  expect(echoesOf(['abcd'])?.written).toEqual(['abcd']);
});

it.each<[string, unknown, string, readonly string[]]>([
  ['no body', undefined, 'unknown error', []],
  [
    'code and message',
    { error: { code: 'Base.1.GeneralError', message: 'It failed.' } },
    'Base.1.GeneralError: It failed.',
    ['Base.1.GeneralError'],
  ],
  [
    'extended information',
    {
      error: {
        code: 'c',
        message: 'm',
        '@Message.ExtendedInfo': [{ MessageId: 'a', Message: 'm' }, { MessageId: 'b' }, { Message: 'x' }, 5, {}],
      },
    },
    'c: m Extended information: b x',
    ['c', 'a', 'b'],
  ],
  ['values of other types', { error: { code: 5, message: ['m'], '@Message.ExtendedInfo': 'text' } }, 'unknown error', []],
  [
    'ExtendedInfo as one object',
    { error: { '@Message.ExtendedInfo': { MessageId: 'Base.1.8.PropertyMissing', Message: 'It is missing.' } } },
    'It is missing.',
    ['Base.1.8.PropertyMissing'],
  ],
  ['ExtendedInfo without error around it', { '@Message.ExtendedInfo': [{ MessageId: 'a', Message: 'text' }] }, 'text', ['a']],
  [
    'ExtendedInfo beside a property',
    { 'Image@Message.ExtendedInfo': [{ MessageId: 'Base.1.13.PropertyValueFormatError', Message: 'The value is wrong.' }] },
    'The value is wrong. (Image)',
    ['Base.1.13.PropertyValueFormatError'],
  ],
  [
    'names in MessageArgs and RelatedProperties alone',
    {
      error: {
        code: 'c',
        '@Message.ExtendedInfo': [
          { MessageId: 'Base.1.18.ActionParameterMissing', MessageArgs: ['InsertMedia', 'TransferProtocolType', 5] },
          { Message: 'UserName is missing', MessageArgs: ['UserName'], RelatedProperties: ['#/UserName', '/Password', ''] },
        ],
      },
    },
    'c Extended information: Base.1.18.ActionParameterMissing (InsertMedia, TransferProtocolType) UserName is missing (Password)',
    ['c', 'Base.1.18.ActionParameterMissing'],
  ],
  ['a text as error', { error: 'No such thing.' }, 'No such thing.', []],
  ['a message without error around it', { message: 'No such thing.' }, 'No such thing.', []],
  ['a long code', { error: { code: 'c'.repeat(2000), message: '' } }, shortened('c'.repeat(2000), 1000), ['c'.repeat(1000)]],
])('errorWords of an error with %s', (_, body, words, messageIds) => {
  expect(errorWords(body)).toEqual({ words, messageIds });
});
it('messagesOf returns at most 20 messages of 1000 characters', () => {
  const all = messagesOf(Array.from({ length: 30 }, () => ({ MessageId: 'i'.repeat(2000), Message: 'm'.repeat(2000) })));
  expect(all).toHaveLength(20);
  expect(all[19]).toEqual({ id: 'i'.repeat(1000), text: shortened('m'.repeat(2000), 1000), args: [] });
});
