import { listenError } from '../../../wire/sockets/listen-errors';

it.each([
  ['EADDRINUSE', /^cannot listen on :80 \(TFTP\): the port is in use$/],
  ['EADDRNOTAVAIL', /: this host does not have the address$/],
  ['EACCES', /: ports below 1024 need root/],
  ['EMFILE', /: the system's text$/],
  [undefined, /: the system's text$/],
])('listenError of %s matches %s', (code, expected) => {
  const cause = Object.assign(new Error("the system's text"), code === undefined ? {} : { code });
  const error = listenError(cause, ':80', 'TFTP');
  expect(error.message).toMatch(expected);
  expect(error.cause).toBe(cause);
});
